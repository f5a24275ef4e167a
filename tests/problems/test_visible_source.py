from pkb.problems.visible_source import extract_visible_source

FILE = '''"""Title."""

import math
import torch

from pkb import Problem

# Kept with what it explains.
K = 4


def helper(x):
    return x * K


@torch.no_grad()
def solution(x):
    LIMIT = helper(x)
    return [LIMIT for _ in range(1)][0]


PROBLEM = Problem()
LIMIT = 3


def inputs(case):
    return math.pi, LIMIT
'''


def test_only_what_solution_reaches_is_shown() -> None:
    assert (
        extract_visible_source(FILE)
        == '''"""Title."""

import torch

# Kept with what it explains.
K = 4


def helper(x):
    return x * K


@torch.no_grad()
def solution(x):
    LIMIT = helper(x)
    return [LIMIT for _ in range(1)][0]
'''
    )
