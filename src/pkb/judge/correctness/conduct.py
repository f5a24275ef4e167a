"""Conclude from a candidate's conduct between results: processes, checks of `pkb.checks`, results that change later."""

from typing import Any

import torch

from pkb.base.schema import SchemaError, parse
from pkb.base.tensors import view_bytes
from pkb.checks import Breach, Check, list_checks
from pkb.checks.library_calls import LibraryCallCheck, sum_calls
from pkb.failure import Failure
from pkb.judge.correctness.check import Wrong
from pkb.judge.correctness.reference import Reference
from pkb.judge.correctness.results import Outputs, fetch_tensors
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.rank_failures import describe_garbled_answer
from pkb.judge.worlds.world import World
from pkb.protocol.messages import ConductReport, HoldFirstResult, ReportConduct
from pkb.record import Verdict
from pkb.settings import Track
from pkb.trial import Trial, TrialKind

_COMPILER = "torch/_inductor/compile_worker"
_PHASE = "the look at its conduct"


def check_conduct(world: World, track: Track, seconds: float) -> dict[str, int]:
    """Raise for what no candidate may do, or none of its track; return the library calls of all ranks."""
    helpers = world.list_helpers()
    if strangers := [line for line in helpers if _COMPILER not in line]:
        raise describe_left_processes(strangers)
    answers = world.ask(ReportConduct(), _PHASE, seconds)
    # By now torch.compile's own have ended: a process that is still there only has their name.
    if helpers and (left := world.list_helpers()):
        raise describe_left_processes(left)
    reports = {check: _parse_reports(check, answers, world) for check in list_checks()}
    for check, found in reports.items():
        if breach := check.conclude(found, track):
            raise _describe_breach(check, breach)
    return sum_calls(reports[LibraryCallCheck])


def _parse_reports(check: type[Check], answers: list[ConductReport], world: World) -> list[Any]:
    reports = []
    for rank, answer in enumerate(answers):
        try:
            reports.append(parse(check.report_type, answer.reports.get(check.name), check.name))
        except SchemaError as error:
            raise describe_garbled_answer(world.blame, rank, _PHASE, error) from error
    return reports


def _describe_breach(check: type[Check], breach: Breach) -> Failure:
    verdict = Verdict(breach.verdict)
    if verdict is Verdict.WRONG:
        return Wrong(breach.reason, check=check.name, rank=breach.rank, **breach.details)
    return Failure(verdict, breach.reason, check=check.name, rank=breach.rank, **breach.details)


def check_first_result(world: World, setup: Setup, seeds: Seeds, reference: Reference, earlier: Outputs) -> None:
    """Raise if what the very first call returned has changed since it was fetched."""
    first = Trial(TrialKind.CHECK)
    world.ask(HoldFirstResult(), "its earlier results", setup.limits.trial_s)
    results = [reference.calls[first, 0, rank].result for rank in range(setup.world)]
    for (_, rank), tensors in fetch_tensors(world, setup, seeds, first, results).items():
        for k, (now, before) in enumerate(zip(tensors, earlier[0, rank], strict=True)):
            if not torch.equal(view_bytes(now), view_bytes(before)):
                raise Wrong(
                    f"rank {rank}, output {k}: a result changed after it was returned; every call must return memory "
                    "of its own, and be done with it",
                    check="kept",
                    rank=rank,
                    output=k,
                )


def describe_left_processes(commands: list[str]) -> Failure:
    """Return the failure of a candidate that left processes running."""
    reason = f"left a process running ({commands[0]}); a kernel must finish its work inside the call"
    return Failure(Verdict.CHEAT, reason, check="left-process", processes=commands)
