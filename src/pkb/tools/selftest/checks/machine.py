"""The machine and its software, as records state them."""

import glob
import os
from collections.abc import Sequence

from pkb.platforms import Platform, load_platforms
from pkb.provenance import describe_environment
from pkb.tools.selftest.bench import Bench
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

_MOST_LOAD = 0.5
"""The load per core above which times vary."""


class _Machine(SelftestCheck):
    name = "machine"
    shows = "The best platform of this machine is used, and nothing else keeps it busy."
    advice = "install what is missing (`pkb doctor` lists it) or name another --platform; stop other programs"

    def plan(self, bench: Bench) -> Sequence[Step]:
        return [Step("platform", _look, Round.FIRST), Step("load", _look_at_load, Round.FIRST)]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        return "; ".join(step.text for step in done)


def _look(bench: Bench) -> StepResult:
    platform = bench.judge.platform
    facts = describe_environment(platform)
    gpus = f"{len(facts.gpus)} x {facts.gpus[0]}, " if facts.gpus else ""
    text = f"{platform.name}: {gpus}{facts.cores} cores; torch {facts.torch}, triton {facts.triton}"
    if better := _list_unused(platform):
        return StepResult(Status.WARNING, f"{text}; a GPU is not used: {'; '.join(better)}")
    return StepResult(Status.OK, text)


def _look_at_load(bench: Bench) -> StepResult:
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    is_idle = load <= _MOST_LOAD * cores
    text = f"load {load:.1f}" if is_idle else f"other programs keep it busy: load {load:.1f} on {cores} cores"
    return StepResult(Status.OK if is_idle else Status.WARNING, text, {"load": load})


def _list_unused(platform: Platform) -> list[str]:
    """Return the platforms that would use this machine's GPUs and cannot, with the reason; empty where none has one."""
    if platform.device_type != "cpu" or not glob.glob("/dev/nvidia[0-9]*"):
        return []
    better = [one for one in load_platforms().values() if one.preference > platform.preference]
    return [f"{one.name}: {lacking}" for one in better if (lacking := one.find_missing())]


MACHINE = _Machine()
