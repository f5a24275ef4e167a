"""`pkb eval`: judge candidates."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.cli import options as o
from pkb.errors import UsageError
from pkb.judge.worlds.prestart import start_nursery
from pkb.settings import JudgementSettings, Limits, ProblemSettings, Rigor, Tolerance, find_rigor, find_track

if TYPE_CHECKING:
    from pkb.candidate import Candidate
    from pkb.judge.judge import Judge
    from pkb.judge.setup.setup import Setup
    from pkb.problems.problem import Problem
    from pkb.record import Record
    from pkb.settings import Rigor, Tolerance

    Stored = dict[str, dict[str, Any]]
    Job = tuple[Setup, Candidate, Stored]

INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    app.command("eval")(evaluate)


def evaluate(
    problems: o.Problems,
    suite: o.SuiteName = "parallel",
    candidate: o.CandidateFile = None,
    solutions_dir: o.SolutionsDir = None,
    backend: o.BackendName = None,
    track: o.TrackName = "any",
    nproc: o.UsualNproc = None,
    trials: o.UsualTrials = None,
    dtype: o.Dtype = "float32",
    size: o.UsualSize = None,
    inputs: o.Inputs = "sound",
    m: o.M = None,
    n: o.N = None,
    atol: Annotated[float | None, typer.Option(help="Compare by |got - expected| <= atol + rtol * |expected|.")] = None,
    rtol: Annotated[float | None, typer.Option(help="See --atol; either replaces the oracle's rule.")] = None,
    measure_perf: Annotated[
        bool, typer.Option("--measure-perf", help="Time correct candidates too, as the next three imply.")
    ] = False,
    rigor: o.UsualRigor = None,
    warm_cache: Annotated[bool, typer.Option("--warm-cache", help="Time with warm caches, not cold ones.")] = False,
    baselines: Annotated[
        str, typer.Option(help="Also time what torch.compile makes of the reference: `all`, or names with commas.")
    ] = "",
    reuse_baselines: Annotated[
        bool, typer.Option("--reuse-baselines", help="Take the times of --baselines from what `pkb baseline` stored.")
    ] = False,
    store: o.Store = None,
    profile: o.Profiler = None,
    platform: o.PlatformName = "auto",
    sandbox: o.SandboxMode = "auto",
    timeout: o.Timeout = 60.0,
    build_timeout: o.BuildTimeout = 300.0,
    out: o.Out = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what --out already has a record of.")] = False,
    as_json: o.Json = False,
) -> None:
    """Judge candidates: right or wrong, and why. Exit code 0 only if all were correct.

    Example: pkb eval 1-8,13 --solutions-dir solutions/triton --backend triton --nproc 4
    """
    start_nursery()
    from pkb.cli.terminal import print_verdicts
    from pkb.judge.judge import Judge
    from pkb.protocol.compile_modes import parse_baselines

    jobs = _jobs(o.chosen_suite(suite).select(problems), candidate, solutions_dir, backend)
    _check_profiler(profile, out)
    timed = _rigor(measure_perf or bool(baselines), rigor, warm_cache)
    extra = parse_baselines(baselines)
    if reuse_baselines and (warm_cache or not extra):
        raise UsageError("--reuse-baselines goes with --baselines, and without --warm-cache")
    posed = ProblemSettings(nproc, o.chosen_size(size, m, n), dtype, trials, inputs=inputs)
    asked = JudgementSettings(
        track=find_track(track),
        tolerance=_tolerance(atol, rtol),
        rigor=timed,
        baselines=() if reuse_baselines else tuple(extra),
        profile=profile is not None,
    )
    with Judge(platform, Limits(build_s=build_timeout, load_s=timeout, trial_s=timeout), sandbox) as judge:
        setups = [judge.pose(problem, posed) for problem, _ in jobs]
        known = [_stored(setup, judge, extra, timed, store) if reuse_baselines and timed else {} for setup in setups]
        batch = _Batch(judge, asked, out, resume)
        records = batch.run(list(zip(setups, [one for _, one in jobs], known, strict=True)), as_json)
    if not as_json:
        print_verdicts(records, out)
    raise typer.Exit(0 if all(record.correct for record in records) else 1)


@dataclass
class _Batch:
    """Candidates that are judged one after the other, all in the same way."""

    judge: "Judge"
    settings: JudgementSettings
    out: Path | None
    resume: bool

    def run(self, jobs: "list[Job]", as_json: bool) -> "list[Record]":
        """The records in order, each shown as soon as there is one. Ctrl+C ends the program."""
        from pkb.cli.eval_progress import watched

        records: list[Record] = []
        try:
            with watched(len(jobs), quiet=as_json) as watch:
                for setup, one, stored in jobs:
                    step = partial(watch.step, setup.problem.stem)
                    records.append(self._record(setup, one, stored, step))
                    watch.done(records[-1])
                    if as_json:
                        print(json.dumps(json.loads(records[-1].to_json())), flush=True)
        except KeyboardInterrupt:
            print(f"\ninterrupted: {len(records)} of {len(jobs)} judged, no rank left running", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        return records

    def _record(self, setup: "Setup", one: "Candidate", stored: "Stored", step: Callable[[str], None]) -> "Record":
        folder = self.out / setup.problem.stem / one.name if self.out else None
        if self.resume and folder and (record := self._earlier(folder, setup, one)):
            return record
        return self.judge.judge(setup, one, replace(self.settings, stored=stored), out=folder, progress=step)

    def _earlier(self, folder: Path, setup: "Setup", one: "Candidate") -> "Record | None":
        from pkb.runs import earlier

        # Where its weights come from is settled when it is judged.
        asked = {key: value for key, value in setup.facts().items() if key != "state"} | {"track": self.settings.track}
        timed = self.settings.rigor is not None
        return earlier(folder, one.digest, self.judge.platform.name, asked, timed=timed)


def _rigor(wanted: bool, name: str | None, warm_cache: bool) -> Rigor | None:
    """How to time, where any option asks for it."""

    chosen = replace(find_rigor(name or "quick"), warm_cache=warm_cache)
    return chosen if wanted or name or warm_cache else None


def _stored(setup: "Setup", judge: "Judge", baselines: list[str], rigor: Rigor, store: Path | None) -> "Stored":
    from pkb.judge.timing.baseline_store import asked_here, default_store, reusable

    return reusable(store or default_store(), asked_here(setup, judge.platform), baselines, rigor.name)


def _check_profiler(name: str | None, out: Path | None) -> None:
    if o.chosen_profiler(name) == "ncu":
        raise UsageError("ncu changes how kernels run; use `pkb dryrun PROBLEM --candidate FILE --profile ncu`")
    if name and out is None:
        raise UsageError("--profile writes a trace per candidate; say where with --out DIR")


def _jobs(
    problems: "list[Problem]", candidate: str | None, folder: Path | None, backend: str | None
) -> "list[tuple[Problem, Candidate]]":
    from pkb.candidate import Candidate

    if (candidate is None) == (folder is None):
        raise UsageError("name what to judge: either --candidate FILE, or --solutions-dir DIR with --backend NAME")
    if folder is not None:
        return [(p, Candidate.read(_solution(folder, p, backend), backend)) for p in problems]
    if candidate == "reference":
        return [(p, Candidate.reference(p)) for p in problems]
    one = Candidate.read(Path(str(candidate)), backend)
    return [(p, one) for p in problems]


def _solution(folder: Path, problem: "Problem", backend: str | None) -> Path:
    if backend is None:
        raise UsageError("--solutions-dir needs --backend: files are named <problem>_<backend>.py")
    path = folder / f"{problem.stem}_{backend}.py"
    if not path.is_file():
        raise UsageError(f"no {path}; name only problems that have a file there, or write it")
    return path


def _tolerance(atol: float | None, rtol: float | None) -> Tolerance | None:

    return None if atol is None and rtol is None else Tolerance(atol or 0.0, rtol or 0.0)
