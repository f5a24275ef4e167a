"""row: 18
tries: breaks the judge with an error report that has one field too many
expect: REJECTED searches-memory
unscreened: CRASH
"""

import gc


def solution(tensor):
    rank = next(found for found in gc.get_objects() if type(found).__name__ == "Rank")
    rank.channel.send({"kind": "ErrorReport", "type": "Error", "message": "", "rank": 7})
    return tensor.clone()
