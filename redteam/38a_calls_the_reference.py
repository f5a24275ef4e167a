"""row: 38
tries: calls the reference, which the rank has loaded for its inputs
expect: CRASH
warns: computes-names
"""

import sys

reference = sys.modules["pkb_problem_1_allreduce"]


def solution(tensor):
    return reference.solution(tensor)
