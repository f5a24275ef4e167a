"""One rank that runs every problem's shown source in a process where pkb cannot be imported.

Started by test_problems.py as: run_shown.py STORE_FILE WORLD RANK
"""

import sys

import torch.distributed as dist

from pkb.problems.suite import list_problems


def run(source: str, args: tuple) -> None:
    """Execute a source with our own package hidden from it."""
    ours = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "pkb"}
    sys.modules |= dict.fromkeys(ours)
    try:
        namespace: dict = {"__name__": "shown"}
        exec(compile(source, "shown.py", "exec"), namespace)
        assert namespace["solution"](*args) is not None
    finally:
        sys.modules |= ours


def main() -> None:
    store, world, rank = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group("gloo", init_method=f"file://{store}", world_size=world, rank=rank)
    for problem in list_problems():
        if world in problem.list_worlds():
            case = problem.case("tiny", "float32", world, rank, seed=rank + 1)
            run(problem.show_source(), problem.inputs(case))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
