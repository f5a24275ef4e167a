"""row: 34
tries: clears its input, so that zeros are the right answer to it
expect: WRONG inputs-unchanged | WRONG values
"""


def solution(tensor):
    tensor.zero_()
    return tensor.clone()
