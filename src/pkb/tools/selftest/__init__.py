"""Test the judge on the user's own machine, in a few minutes: `pkb selftest`.

`runner.py` is the story; `checks/` has one file per check, and `checks/__init__.py` the list of them.
"""
