"""One call of a candidate, looked at but not judged."""

from pathlib import Path

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.judge.seen import Seen
from pkb.judge.trials import Setup, run_trial, tensors_of
from pkb.samples import sample_line


def dry_run(judge: Judge, setup: Setup, candidate: Candidate, traces: Path | None = None) -> list[list[str]]:
    """Lines for each rank: one per output tensor. With `traces`, a Chrome trace per rank is left there."""
    seen = Seen()
    judge.make_ready(setup, candidate, seen)
    with judge.candidate_world(setup, candidate, seen) as world:
        setup.prepare(world, judge.seeds, trial=0)
        results = run_trial(world, setup, "the call", profile=traces is not None)
        lines = []
        for result in results:
            tensors = tensors_of(result, world, setup.limits.trial_s)
            lines.append([sample_line(f"output {k}", tensor) for k, tensor in enumerate(tensors)])
        if traces:
            _collect(world.folder, traces)
        world.end()
    return lines


def _collect(folder: Path, traces: Path) -> None:
    traces.mkdir(parents=True, exist_ok=True)
    for trace in folder.glob("rank-*/trace.json"):
        rank = trace.parent.name.removeprefix("rank-")
        (traces / f"rank_{rank}.json").write_bytes(trace.read_bytes())
