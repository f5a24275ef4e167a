"""Judge 1000 hostile candidates in one judge, and show that nothing of them is left.

    python benchmarks/hostile.py [--count 1000] [--seed 0] [--sandbox auto]

Each candidate misbehaves in one of the ways below, chosen by a seeded generator; every 20th is honest. Prints the
verdicts and seconds by behaviour, and what the machine held before and after: processes, descriptors, threads, memory,
temporary folders, shared memory. Exit code 1 if something leaked, if an honest candidate was not CORRECT, or if the
judge itself raised an exception. The static screen is off, so that every candidate runs.
"""

import argparse
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import Setup
from pkb.record import Record
from pkb.settings import JudgementSettings, Limits, ProblemSettings

EVERY = 20
"""The distance between two honest candidates."""
WARM_UP = 3
"""Honest candidates before the first count, since libraries and caches grow at first."""
MOST_GROWTH_MIB = 100.0
LIMITS = Limits(load_s=6.0, trial_s=2.0, log_bytes=4 << 20, memory_bytes=1 << 29)
MARK = f"hostile-{os.getpid()}"
"""Part of the environment of all processes that this program starts, and of names in shared memory."""
HONEST = "honest"
START = """
import ctypes, os, resource, signal, sys, threading, time
import torch
import torch.distributed as dist

def add(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total

"""
SLOW = {
    "hangs": "time.sleep(600)",
    "waits for a peer that stays away": "return add(tensor) if dist.get_rank() else time.sleep(600)",
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "stops reading": "signal.signal(signal.SIGALRM, lambda *_: time.sleep(600)); signal.setitimer(0, 0.02, 0.02)",
}
"""Behaviours that take the whole of a deadline: few candidates have one of them."""
QUICK = {
    "raises": "raise RuntimeError('x' * 100_000)",
    "raises what cannot be printed": r"raise type('\u202eE\ud800', (Exception,), {'__str__': lambda self: 1 / 0})",
    "exits": "sys.exit(0)",
    "exits at once": "os._exit(0)",
    "kills itself": "os.kill(os.getpid(), signal.SIGKILL)",
    "reads address 0": "ctypes.string_at(0)",
    "aborts": "os.abort()",
    "leaves a thread": "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
    "leaves a process": "os.fork() or time.sleep(600)",
    "leaves a daemon": "os.fork() or (os.setsid(), os.fork() or time.sleep(600), os._exit(0))",
    "leaves 20 processes": "all(os.fork() for _ in range(20)) or time.sleep(600)",
    "returns twice": "os.fork()",
    "closes all descriptors": "os.closerange(0, 4096)",
    "opens descriptors until none is left": "while True: globals().setdefault('held', []).append(open('/dev/null'))",
    "starts threads until none is left": "while True: threading.Thread(target=time.sleep, args=(60,)).start()",
    "fills its folder": "[open(f'{k}', 'w').write('x' * 1000) for k in range(3000)]",
    "nests folders": "[(os.mkdir('d'), os.chdir('d')) for _ in range(3000)]",
    "leaves odd names": r"[os.mkdir(n) for n in (b'\xff', b'\n', b'-rf', b' ', b'n' * 255)]; os.mkfifo('pipe')",
    "links to outside": "os.symlink('/', 'root'); os.symlink('..', 'up')",
    "takes all rights away": "os.makedirs('a/b'); os.chmod('a/b', 0); os.chmod('a', 0); os.chmod('.', 0)",
    "removes its folder": "import shutil; shutil.rmtree(os.path.dirname(os.getcwd()))",
    "changes folder and umask": "os.chdir('/'); os.umask(0o777)",
    "writes a large file": "os.truncate(os.open('large', os.O_CREAT | os.O_RDWR), 1 << 45)",
    "shares memory": f"open(f'/dev/shm/{MARK}-{{os.getpid()}}', 'wb').write(bytes(1 << 22))",
    "shares a segment": "ctypes.CDLL(None).shmget(0, 1 << 22, 0o1600)",
    "writes garbage": "[os.write(k, os.urandom(512)) for k in range(3, 16) if os.path.exists(f'/proc/self/fd/{k}')]",
    "prints endlessly": "while True: print('x' * 10_000)",
    "prints what steers a terminal": r"print('\x1b[2J\x1b]0;title\x07' * 100); os.write(1, b'\xff' * 1000)",
    "allocates without end": "while True: globals().setdefault('held', []).append(bytearray(1 << 24))",
    "returns what is huge": "return torch.zeros(1).expand(1 << 40)",
    "returns zeros": "return torch.zeros_like(tensor)",
    "returns what is deep": "exec('for _ in range(3000): tensor = [tensor]'); return locals()['tensor']",
    "returns what is odd": r"return {'\ud800': tensor, float('nan'): object()}",
    "signals its group": "os.killpg(0, signal.SIGTERM)",
    "kills its parent": "os.getppid() > 1 and os.kill(os.getppid(), signal.SIGKILL)",
    "ignores signals": "[signal.signal(k, signal.SIG_IGN) for k in (1, 2, 10, 13, 14, 15)]",
    "does not want to leave": "import atexit; atexit.register(time.sleep, 600)",
    "lowers limits": "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); sys.setrecursionlimit(60)",
    "forgets modules": "sys.modules.clear()",
    "cannot be loaded": None,
}
"""By behaviour: what the first call does before it returns the right result; None for a file that is no Python."""


@dataclass(frozen=True)
class Holdings:
    """What this program, its judge and the machine hold."""

    processes: int
    descriptors: int
    threads: int
    judge_mib: float
    nursery_mib: float
    temporary_entries: int
    shared_entries: int
    segments: int

    @classmethod
    def count(cls, judge: Judge, folder: Path) -> "Holdings":
        shared = [name for name in os.listdir("/dev/shm") if MARK in name]
        return cls(
            processes=len(list_processes()),
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=len(os.listdir("/proc/self/task")),
            judge_mib=read_resident_mib(os.getpid()),
            nursery_mib=read_resident_mib(judge.nursery.process.pid),
            temporary_entries=sum(1 for _ in folder.rglob("*")),
            shared_entries=len(shared) + sum(1 for _ in judge.nursery.shared.rglob("*")),
            segments=len(Path("/proc/sysvipc/shm").read_text().splitlines()) - 1,
        )

    def list_growth(self, earlier: "Holdings") -> Iterator[str]:
        """Yield what has grown since an earlier count, by more than noise."""
        for name, value in vars(self).items():
            if value - vars(earlier)[name] > (MOST_GROWTH_MIB if name.endswith("_mib") else 0):
                yield f"{name.replace('_', ' ')}: {vars(earlier)[name]:.0f} -> {value:.0f}"


@dataclass(frozen=True)
class Judged:
    behaviour: str
    record: Record
    seconds: float


def list_processes() -> list[int]:
    """Return the processes that this program has started, and all that come from them: each inherits the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            marked = f"LC_MARK={MARK}".encode() in (folder / "environ").read_bytes().split(b"\0")
            zombie = (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if marked and not zombie and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def read_resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def make_candidate(behaviour: str, number: int) -> Candidate:
    act = {**QUICK, **SLOW, HONEST: "pass"}[behaviour]
    body = "def solution(tensor:" if act is None else f"def act(tensor):\n    {act}\n\n{SOLUTION}"
    return Candidate.of(f"# {number}\n{START}{body}".encode(), f"{number}")


SOLUTION = """
def solution(tensor):
    result = globals().pop('act', lambda tensor: None)(tensor)
    return add(tensor) if result is None else result
"""


def choose_behaviours(count: int, seed: int) -> list[str]:
    """Return one behaviour per candidate: each quick one in turn, in random order, some slow ones, honest between."""
    draw = random.Random(seed)
    hostile = [name for _ in range(count // len(QUICK) + 1) for name in draw.sample([*QUICK], len(QUICK))]
    for place in range(0, count, 2 * EVERY):
        hostile[place] = draw.choice([*SLOW])
    return [HONEST if number % EVERY == EVERY - 1 else hostile[number] for number in range(count)]


def judge_one(judge: Judge, setup: Setup, behaviour: str, number: int) -> Judged:
    start = time.monotonic()
    posed = replace(setup, limits=Limits()) if behaviour == HONEST else setup
    record = judge.judge(posed, make_candidate(behaviour, number), JudgementSettings(screen=False))
    return Judged(behaviour, record, time.monotonic() - start)


def print_behaviours(found: list[Judged]) -> None:
    by_name = defaultdict(list)
    for one in found:
        by_name[one.behaviour].append(one)
    print("| behaviour | candidates | verdicts | median s | longest s |\n|---|---:|---|---:|---:|")
    for name in [HONEST, *SLOW, *QUICK]:
        if some := by_name.get(name):
            verdicts = Counter(str(one.record.verdict) for one in some)
            shown = ", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common())
            times = [one.seconds for one in some]
            print(f"| {name} | {len(some)} | {shown} | {statistics.median(times):.2f} | {max(times):.2f} |")


def print_holdings(before: Holdings, after: Holdings) -> None:
    print("\n| held | before | after |\n|---|---:|---:|")
    for name, value in vars(before).items():
        print(f"| {name.replace('_', ' ')} | {value:.0f} | {vars(after)[name]:.0f} |")


def list_faults(found: list[Judged], before: Holdings, after: Holdings) -> Iterator[str]:
    yield from after.list_growth(before)
    for one in found:
        if one.behaviour == HONEST and not one.record.correct:
            yield f"an honest candidate was {one.record.verdict}: {one.record.reason}"
        if one.record.evidence.check == "judge":
            yield f"{one.behaviour}: {one.record.reason} {one.record.evidence.traceback[-1:]}"


def run(count: int, seed: int, sandbox: str, folder: Path) -> list[str]:
    """Judge the candidates and print the tables; return what went wrong."""
    with Judge("cpu", LIMITS, sandbox) as judge:
        setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
        for number in range(WARM_UP):
            judge_one(judge, setup, HONEST, -1 - number)
        before, start = Holdings.count(judge, folder), time.monotonic()
        found = []
        for number, behaviour in enumerate(choose_behaviours(count, seed)):
            found.append(judge_one(judge, setup, behaviour, number))
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {count}", end="", file=sys.stderr)
        seconds = time.monotonic() - start
        # The nursery may just be reaping what the last candidate left.
        time.sleep(1.0)
        after = Holdings.count(judge, folder)
        print(f"{os.cpu_count()} cores, {date.today()}, sandbox {judge.sandbox.facts.level}, {platform.machine()}")
        print(f"{count} candidates in {seconds:.0f} s, {seconds / count:.2f} s each\n")
    print_behaviours(found)
    print_holdings(before, after)
    left = [*folder.iterdir(), *list_processes(), *(name for name in os.listdir("/dev/shm") if MARK in name)]
    return [*list_faults(found, before, after), *(f"left when the judge was closed: {one}" for one in left)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="the number of candidates")
    parser.add_argument("--seed", type=int, default=0, help="chooses the behaviours")
    parser.add_argument("--sandbox", default="auto", help="as in `pkb eval`")
    options = parser.parse_args()
    os.environ["LC_MARK"] = MARK
    with tempfile.TemporaryDirectory(prefix="pkb-hostile-") as folder:
        tempfile.tempdir = folder
        faults = run(options.count, options.seed, options.sandbox, Path(folder))
    print("\n" + ("\n".join(f"FAULT {fault}" for fault in faults) or "nothing leaked, and all honest ones are CORRECT"))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
