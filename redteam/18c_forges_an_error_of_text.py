"""row: 18
tries: breaks the judge with an error report that is text
expect: REJECTED searches-memory
unscreened: CRASH
"""

import gc


def solution(tensor):
    rank = next(found for found in gc.get_objects() if type(found).__name__ == "Rank")
    rank.channel.send({"kind": "ErrorReport", "type": ["all"], "message": {"is": "well"}, "traceback": "!"})
    return tensor.clone()
