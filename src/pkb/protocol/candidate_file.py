"""The name under which the judge hands a candidate's source to its ranks, and by which both find its own lines."""

CANDIDATE_FILE = "candidate.py"
