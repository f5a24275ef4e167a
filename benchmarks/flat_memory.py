"""Measure whether the judge's memory stays flat: the resident size of judge and nursery over 200 candidates.

python benchmarks/flat_memory.py
"""

import os
from pathlib import Path

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import load_problem
from pkb.settings import ProblemSettings

CANDIDATES = 200
KINDS = {
    "right": b"import torch.distributed as d\ndef solution(t):\n    t = t.clone()\n    d.all_reduce(t)\n    return t\n",
    "wrong": b"def solution(t):\n    return t.clone()\n",
    "crash": b"def solution(t):\n    raise ValueError('no')\n",
    "broken": b"def solution(t:\n",
    "loud": b"def solution(t):\n    print('x' * 1000000)\n    return t\n",
}


def read_resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def count_open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def main() -> None:
    with Judge("cpu") as judge:
        setup = judge.pose(load_problem("allreduce"), ProblemSettings(nproc=2, trials=1))
        for count in range(CANDIDATES + 1):
            source = KINDS[list(KINDS)[count % len(KINDS)]] + f"# {count}\n".encode()
            judge.judge(setup, Candidate.of(source))
            if count % 50 == 0 or count == 10:
                ours, theirs = read_resident_mib(os.getpid()), read_resident_mib(judge.nursery.process.pid)
                memory = f"judge {ours:.0f} MiB, nursery {theirs:.0f} MiB"
                print(f"after {count:3} candidates: {memory}, {count_open_files()} files")


if __name__ == "__main__":
    main()
