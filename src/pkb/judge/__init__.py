"""Runs reference and candidate, compares, times, decides. The story is in judgement.py."""
