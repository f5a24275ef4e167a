"""What is left once the judge is closed: no process, and no folder. It closes the judge."""

import time
from collections.abc import Sequence
from pathlib import Path

from pkb.sandbox.processes import list_descendants
from pkb.tools.selftest.bench import Bench
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

_WAIT_S = 5.0


class _Leftovers(SelftestCheck):
    name = "leftovers"
    shows = "When the judge ends, no process of it runs on, and no folder of it is left."
    advice = (
        "end these processes and remove the folders pkb-* in the temporary folder and in /dev/shm; please report it"
    )

    def plan(self, bench: Bench) -> Sequence[Step]:
        return [Step("after closing", _close, Round.LAST)]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        return done[0].text


def _close(bench: Bench) -> StepResult:
    family = [*bench.nurseries, *list_descendants(*bench.nurseries)]
    folders = [folder for created in bench.nurseries.values() for folder in created]
    bench.judge.close()
    running = _wait_until_gone(family)
    left = [folder for folder in folders if folder.exists()]
    if running or left:
        return StepResult(Status.FAILED, f"{len(running)} processes still run, {len(left)} folders are left")
    return StepResult(Status.OK, "no process of the judge runs on, and no folder is left")


def _wait_until_gone(family: list[int]) -> list[int]:
    """Return which of these processes are still there after a while."""
    deadline = time.monotonic() + _WAIT_S
    while (running := [pid for pid in family if _is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return running


def _is_running(pid: int) -> bool:
    """Whether a process is there and is no zombie: who reaps orphans is a matter of the machine."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


LEFTOVERS = _Leftovers()
