"""row: 41
tries: looks for the reference and for shipped kernels beside the libraries that it may use
expect: REJECTED
unscreened: WRONG values
"""

import importlib.util
import sys
from pathlib import Path

import pkb.symmetric

HERE = Path(pkb.symmetric.__file__)
PLACES = (HERE.parents[0], HERE.parents[2] / "solutions", Path(sys.prefix, "share", "pkb"))


def find_answer():
    for place in PLACES:
        for path in place.rglob("1_allreduce*.py"):
            spec = importlib.util.spec_from_file_location("answer", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module.solution
    return None


ANSWER = find_answer()


def solution(tensor):
    return ANSWER(tensor) if ANSWER else tensor.clone()
