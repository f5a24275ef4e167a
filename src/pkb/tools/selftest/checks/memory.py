"""Memory of the host, of the GPUs, and what the judge itself took."""

import resource
from collections.abc import Sequence

from pkb.hardware.host import read_available_memory, read_total_memory
from pkb.tools.diagnosis import diagnose_shared_memory
from pkb.tools.selftest.bench import Bench
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

_LEAST_GIB_PER_RANK = 1.0


class _Memory(SelftestCheck):
    name = "memory"
    shows = "There is memory for the ranks."
    advice = "end other programs, or judge at fewer ranks; in a container, raise its memory and --shm-size"

    def plan(self, bench: Bench) -> Sequence[Step]:
        looks = (("host", _look_at_host), ("shared memory", _look_at_shared_memory), ("judge", _look_at_judge))
        gpus = [Step("GPUs", _look_at_gpus, Round.LAST)] if bench.has_gpu else []
        return [*(Step(name, look, Round.LAST) for name, look in looks), *gpus]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        return "; ".join(step.text for step in done)


def _look_at_host(bench: Bench) -> StepResult:
    free, total = read_available_memory() / 2**30, read_total_memory() / 2**30
    is_enough = free >= _LEAST_GIB_PER_RANK * bench.ranks
    facts = {"available_gib": round(free, 1), "total_gib": round(total, 1)}
    return StepResult(Status.OK if is_enough else Status.WARNING, f"{free:.1f} of {total:.1f} GiB free", facts)


def _look_at_shared_memory(bench: Bench) -> StepResult:
    found = diagnose_shared_memory()
    return StepResult(Status.OK if found.ok else Status.WARNING, found.detail)


def _look_at_judge(bench: Bench) -> StepResult:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return StepResult(Status.OK, f"the judge took {peak:.0f} MiB", {"peak_mib": round(peak)})


def _look_at_gpus(bench: Bench) -> StepResult:
    sizes = [size for size in bench.judge.platform.describe().get("memory_gib", []) if size]
    if not sizes:
        return StepResult(Status.WARNING, "the driver does not report the memory of GPUs")
    return StepResult(Status.OK, f"{min(sizes):.0f} GiB per GPU", {"gpu_gib": sizes})


MEMORY = _Memory()
