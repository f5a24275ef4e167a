"""Print docs/deviations.md: how our problems differ from the published ones, as the problem files declare it.

    python tools/deviations.py > docs/deviations.md

`tests/problems/test_deviations.py` fails when the page and the declarations differ.
"""

from collections.abc import Iterator

from pkb.problems.problem import ASPECTS, Problem
from pkb.problems.suite import find_suite

HEAD = """# How our problems differ from the published ones

The 87 problems have the numbers, names, signatures and results of the public ParallelKernelBench: kernels that were
written for it run here without changes. Inputs differ, because under many of the published ones a wrong kernel passes;
in a few problems more than the inputs differ, and the reason is given. `python tools/deviations.py` prints this page
from the field `deviations` of each problem's file, and a test compares the two. `pkb show N` prints the same for one
problem.

What all problems share is not repeated below:

- Besides `paper`, the published size, each problem has `tiny`, `large`, and sizes near `tiny` that no prompt names.
- Inputs are new in every call, from a secret seed; published ones follow from the number of the trial.
- References run on gloo as well as NCCL, and take their device from their arguments.
- Results are compared by the errors that rounding explains ([methodology.md](methodology.md)), where the published
  suite has one absolute and one relative tolerance for all problems.
- Arguments that are not named under *result* must not change.

To judge with the published references and inputs instead, see [published-suite.md](published-suite.md).
"""
SPEED = """## How fast our references are

Where our reference and the published one compute the same in other ways, a kernel's speed-up over ours is not its
speed-up over the published one. Time of ours divided by that of the published one, on an H200 (`shared-gpu`, 2 ranks,
bfloat16, size paper), as a reviewer measured it from outside on commit 8c6d13b by judging the published references as
candidates; these were far from 1:

| problem | ours / published |
|---|---|
| 64 | 0.01 |
| 66 | 0.03 |
| 78 | 0.09 |
| 25 | 0.16 |
| 84 | 0.26 |
| 69, 85 | 0.65 |
| 40 | 0.68 |
| 49 to 51 | 0.69 to 0.78 |
| 31 | 0.70 |
| 65 | 1.29 |
| 19 | 1.73 |

82 of 86 published references were CORRECT there (62 was not run). The others: 39, whose function differs; 48 and 77,
for which the GPU's memory did not suffice; 61, whose results were views, which were refused then. `pkb baseline all
--published DIR` times a checkout's references beside ours on your machine.
"""


def write_page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, SPEED, "## Problem by problem\n", *_list_aspects(), "", *_list_problems()])


def _list_aspects() -> list[str]:
    return [f"- *{name}*: {meaning}" for name, meaning in ASPECTS.items()]


def _list_problems() -> Iterator[str]:
    for problem in find_suite("parallel").read_problems():
        yield f"### {problem.stem}\n"
        yield from _describe(problem)
        yield ""


def _describe(problem: Problem) -> list[str]:
    known = problem.deviations
    return [f"- *{name}*: {known[name]}" for name in ASPECTS if name in known] or ["No difference."]


if __name__ == "__main__":
    print(write_page(), end="")
