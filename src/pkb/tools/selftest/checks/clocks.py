"""How steady times are on this machine: the spread of identical blocks, and the clock rates of GPUs meanwhile."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from pkb.errors import UsageError
from pkb.record import Record
from pkb.speedup import compute_block_times
from pkb.tools.selftest.bench import Bench
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

_MOST_SPREAD, _MOST_SPREAD_OF_HOST = 0.1, 0.5
"""The share of its median by which the middle 80 % of a reference's blocks may differ without a warning."""
_MOST_DRIFT = 0.05
"""The share by which the rate of a GPU may differ while identical code is timed."""


class _Clocks(SelftestCheck):
    name = "clocks"
    shows = "Times are steady: identical blocks take the same time, and GPUs keep their clock rates."
    advice = "stop other programs; on GPUs, look for throttling (`nvidia-smi -q -d PERFORMANCE`) or lock the clock rate"

    def plan(self, bench: Bench) -> Sequence[Step]:
        rates = [Step("clock rates", _look_at_rates, Round.LAST)] if bench.has_gpu else []
        return [Step("spread", _look_at_spread, Round.LAST), *rates]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        return "; ".join(step.text for step in done)


def _look_at_spread(bench: Bench) -> StepResult:
    spreads = {f"{one.problem} at {one.setup.world}": _compute_spread(one) for one in _list_timed(bench)}
    worst = max(spreads, key=lambda name: spreads[name])
    noise = [one.timing.judge_clock_us for one in bench.timed if one.timing]
    text = f"identical blocks differ by {spreads[worst]:.0%} at most ({worst})"
    is_steady = spreads[worst] <= (_MOST_SPREAD if bench.has_gpu else _MOST_SPREAD_OF_HOST)
    facts = {"spreads": spreads, "judge_clock_us": noise}
    return StepResult(Status.OK if is_steady else Status.WARNING, text, facts)


def _compute_spread(record: Record) -> float:
    """Return the width of the middle 80 % of the reference's block times, as a share of their median."""
    assert record.timing, "only records of timed judgements are kept"
    times = compute_block_times(record.timing.blocks_us["reference"])
    tenths = statistics.quantiles(times, n=10)
    return (tenths[-1] - tenths[0]) / statistics.median(times)


def _look_at_rates(bench: Bench) -> StepResult:
    rates = {key: values for key, values in _collect_rates(bench).items() if values}
    if not rates:
        return StepResult(Status.WARNING, "the driver does not report clock rates")
    drift = max(max(values) / min(values) - 1 for values in rates.values())
    slowest, fastest = min(map(min, rates.values())), max(map(max, rates.values()))
    text = f"GPUs ran at {slowest} to {fastest} MHz"
    return StepResult(Status.OK if drift <= _MOST_DRIFT else Status.WARNING, text, {"sm_mhz": rates})


def _collect_rates(bench: Bench) -> dict[str, list[int]]:
    """Return, by GPU, the rates of its multiprocessors before and after each timed judgement."""
    rates: dict[str, list[int]] = {}
    for reading in _list_readings(bench):
        for number, gpu in enumerate(reading.get("gpus", [])[: bench.ranks]):
            rates.setdefault(str(number), []).extend([gpu["sm_mhz"]] if gpu.get("sm_mhz") else [])
    return rates


def _list_readings(bench: Bench) -> Iterator[dict[str, Any]]:
    for record in _list_timed(bench):
        if record.timing:
            yield from record.timing.clocks.values()


def _list_timed(bench: Bench) -> list[Record]:
    if not bench.timed:
        raise UsageError("no identical code was timed")
    return bench.timed


CLOCKS = _Clocks()
