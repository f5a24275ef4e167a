"""Apart from conftest.py, whose name several folders share."""

DEADLINE_S = 4.0
