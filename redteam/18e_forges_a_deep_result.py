"""row: 18
tries: breaks the judge with a result of four hundred lists in one another
expect: REJECTED searches-memory
unscreened: CRASH protocol | WRONG form
"""

import gc


def solution(tensor):
    rank = next(found for found in gc.get_objects() if type(found).__name__ == "Rank")
    form = {"value": 1}
    for _ in range(400):
        form = [form]
    rank.channel.send({"kind": "CallResults", "results": [{"form": form, "leaves": [], "changed": []}] * 3})
    return tensor.clone()
