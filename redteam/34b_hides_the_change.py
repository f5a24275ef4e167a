"""row: 34
tries: the same, with the rank's own report of changed arguments silenced
expect: REJECTED imports-the-judge | REJECTED patches
unscreened: WRONG values | CHEAT patched
"""

from pkb.rank.call import Call

Call._list_changed_arguments = lambda self: []


def solution(tensor):
    tensor.zero_()
    return tensor.clone()
