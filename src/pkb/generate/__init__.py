"""Asks language models for kernels: problem → prompt → model → candidate, and on to the judge.

`prompt` assembles the text from `template`, `arguments`, `outline` and `examples`; `model` asks; `extract` finds the
candidate in the answer; `store` keeps all of it; `sampling` does that for many problems at once, within a `budget`.
"""
