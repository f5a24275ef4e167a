"""What the judge and the ranks agree on about profiles."""

TRACE = "trace.json"
"""The file in a rank's folder, and later in the sample's, that holds a Chrome trace."""
WARM_UP_CALLS = 2
"""Calls before the first profiled one: by then both buffers of a pair have been used, and everything is compiled."""


def name_trace(rank: int) -> str:
    """Return the name of the file in the world's folder into which a rank copies its trace."""
    return f"trace-{rank}.json"
