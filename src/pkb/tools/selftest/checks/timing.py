"""Identical code must be a TIE, and code that does its work three times SLOWER."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pkb.candidate import Candidate
from pkb.judge.setup.setup import Setup
from pkb.record import Pace, Record
from pkb.settings import JudgementSettings
from pkb.tools.selftest.bench import TIMED, Bench, describe_judgement
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

_PROBLEMS = ("1_allreduce", "13_gemm_allreduce", "8_alltoall", "73_vocab_parallel_cross_entropy_loss")
_REPEAT = """

_once = solution


def solution(*arguments):
    _once(*arguments)
    _once(*arguments)
    return _once(*arguments)
"""
_CLEARLY_SLOWER = 2 / 3
_HOST_RANKS = 2
"""Ranks on the host take turns on its cores: with more of them, times tell little."""


class _Timing(SelftestCheck):
    name = "identical code"
    shows = "The clock is fair: identical code is a TIE, and three times the work is SLOWER."
    advice = "stop other programs on this machine and run `pkb selftest` again; if it stays, please report the record"

    def plan(self, bench: Bench) -> Sequence[Step]:
        first, *others = _list_worlds(bench)
        pairs = [
            (_PROBLEMS[0], first),
            *((name, first) for name in _PROBLEMS[1:]),
            *((_PROBLEMS[0], w) for w in others),
        ]
        return [
            Step(f"{pairs[0][0]} at {first}", partial(_time_identical, *pairs[0]), Round.FIRST),
            Step(f"three times the work at {first}", partial(_time_repeated, _PROBLEMS[0], first), Round.FIRST),
            *(Step(f"{name} at {world}", partial(_time_identical, name, world)) for name, world in pairs[1:]),
        ]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        timings = [step.facts["timing"] for step in done]
        ties = [timing["ratio"] for timing in timings if timing["pace"] == Pace.TIE]
        told = [f"{len(ties)} pairs a TIE, {min(ties):.3f} to {max(ties):.3f}"] if ties else []
        told += [f"three times the work {t['ratio']:.2f}" for t in timings if t["pace"] == Pace.SLOWER]
        return "; ".join(told)


def _list_worlds(bench: Bench) -> list[int]:
    """Return the numbers of ranks at which identical code is timed, the most telling one first."""
    if not bench.has_gpu:
        return [min(bench.ranks, _HOST_RANKS), 1]
    return list(dict.fromkeys([bench.ranks, min(bench.ranks, 2), 1]))


def _time_identical(name: str, world: int, bench: Bench) -> StepResult:
    setup = _pose(name, world, bench)
    record = bench.judge_candidate(setup, Candidate.reference(setup.problem), JudgementSettings(rigor=TIMED))
    if record.timing:
        bench.timed.append(record)
    return _expect(record, Pace.TIE)


def _time_repeated(name: str, world: int, bench: Bench) -> StepResult:
    setup = _pose(name, world, bench)
    candidate = Candidate.of((setup.problem.make_candidate_source() + _REPEAT).encode(), "three_times", "torch")
    record = bench.judge_candidate(setup, candidate, JudgementSettings(rigor=TIMED))
    result = _expect(record, Pace.SLOWER)
    if record.timing and record.pace is Pace.TIE and record.timing.speedup < _CLEARLY_SLOWER:
        # The ratio is right, and the interval honest: times of this machine vary too much to tell the two apart.
        return replace(result, status=Status.WARNING, text=f"{result.text}: times vary too much here")
    return result


def _pose(name: str, world: int, bench: Bench) -> Setup:
    return bench.pose(name, world, timed=True, dtype="bfloat16" if bench.has_gpu else "float32")


def _expect(record: Record, pace: Pace) -> StepResult:
    if record.timing is None:
        return StepResult(Status.FAILED, f"{record.verdict}: {record.reason}", describe_judgement(record))
    low, high = record.timing.interval
    said = f"{record.timing.speedup:.3f} ({low:.3f}-{high:.3f}) {record.pace}"
    text = said if record.pace is pace else f"{said} in place of {pace}"
    return StepResult(Status.OK if record.pace is pace else Status.FAILED, text, describe_judgement(record))


TIMING = _Timing()
