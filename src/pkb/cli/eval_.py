"""`pkb eval`: judge candidates."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkb.base.printable import clean_line
from pkb.cli import _options as o
from pkb.cli._messages import exit_interrupted
from pkb.errors import UsageError
from pkb.judge.worlds.prestart import start_nursery
from pkb.settings import JudgementSettings, Limits, ProblemSettings, Rigor, Tolerance, find_rigor, find_track

if TYPE_CHECKING:
    from pkb.candidate import Candidate
    from pkb.judge.judge import Judge
    from pkb.judge.setup.setup import Setup
    from pkb.problems.problem import Problem
    from pkb.record import Record

    Stored = dict[str, dict[str, Any]]
    Job = tuple[Setup, Candidate, Stored]

_MOST_NAMED = 5


def register(app: typer.Typer) -> None:
    app.command("eval")(evaluate)


def evaluate(
    context: typer.Context,
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
    atol: Annotated[float | None, typer.Option(help="Accept |got - expected| <= atol + rtol * |expected|.")] = None,
    rtol: Annotated[
        float | None, typer.Option(help="See --atol. Either of the two replaces the comparison with the oracle.")
    ] = None,
    measure_perf: Annotated[
        bool, typer.Option("--measure-perf", help="Time correct candidates too; the next three options imply it.")
    ] = False,
    rigor: o.UsualRigor = None,
    warm_cache: Annotated[
        bool, typer.Option("--warm-cache", help="Time with warm caches instead of cold ones.")
    ] = False,
    baselines: Annotated[
        str, typer.Option(help="Also time the reference under torch.compile: `all`, or names with commas.")
    ] = "",
    reuse_baselines: Annotated[
        bool,
        typer.Option(
            "--reuse-baselines", help="Do not time --baselines again: use the times that `pkb baseline` stored."
        ),
    ] = False,
    store: o.Store = None,
    profile: o.Profile = False,
    profiler: o.Profiler = None,
    platform: o.PlatformName = "auto",
    sandbox: o.SandboxMode = "auto",
    timeout: o.Timeout = 60.0,
    build_timeout: o.BuildTimeout = 300.0,
    out: o.Out = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip candidates that have a record in --out already.")
    ] = False,
    as_json: o.Json = False,
) -> None:
    """Judge candidates: whether they are correct, how fast they are, and why.

    Exit code 0 if every problem that was named has a correct candidate.

    Example: pkb eval 1-8,13 --solutions-dir solutions/triton --backend triton --nproc 4
    """
    start_nursery()
    from pkb.cli._terminal import print_summary
    from pkb.judge.judge import Judge
    from pkb.problems.suite import find_suite
    from pkb.protocol.compile_modes import parse_baselines

    _refuse_unused(context, candidate, out, reuse_baselines)
    chosen = find_suite(suite).select(problems)
    pairs = _find_candidates(chosen, candidate, solutions_dir, backend)
    profiled = _check_profiler(o.find_profiler(profile, profiler), out)
    timed = _choose_rigor(measure_perf or bool(baselines), rigor, warm_cache)
    extra = parse_baselines(baselines)
    if reuse_baselines and (warm_cache or not extra):
        raise UsageError("--reuse-baselines needs --baselines, and excludes --warm-cache")
    posed = ProblemSettings(nproc, o.parse_size(context, size, m, n), dtype, trials, inputs=inputs)
    asked = JudgementSettings(
        track=find_track(track),
        tolerance=_make_tolerance(atol, rtol),
        rigor=timed,
        baselines=() if reuse_baselines else tuple(extra),
        profile=profiled,
    )
    with Judge(platform, Limits(build_s=build_timeout, load_s=timeout, trial_s=timeout), sandbox) as judge:
        setups = [judge.pose(problem, posed) for problem, _ in pairs]
        known = [
            _read_times(setup, judge, extra, timed, store) if reuse_baselines and timed else {} for setup in setups
        ]
        if out:
            o.prepare_folder(out)
        batch = _Batch(judge, asked, out, resume)
        records = batch.run(list(zip(setups, [one for _, one in pairs], known, strict=True)), as_json)
    if not as_json:
        print_summary(records, out)
    missing = [problem.stem for problem in chosen if problem not in {problem for problem, _ in pairs}]
    if missing:
        print(_describe_missing(missing, len(chosen), solutions_dir), file=sys.stderr)
    raise typer.Exit(0 if all(record.correct for record in records) and not missing else 1)


def _refuse_unused(context: typer.Context, candidate: str | None, out: Path | None, reuse_baselines: bool) -> None:
    if candidate == "reference":
        o.refuse_unused(context, ["backend"], "with --candidate reference, which is torch")
    if out is None:
        o.refuse_unused(context, ["resume"], "without --out DIR, which holds the earlier records")
    if not reuse_baselines:
        o.refuse_unused(context, ["store"], "without --reuse-baselines")


def _describe_missing(stems: list[str], count: int, folder: Path | None) -> str:
    named = ", ".join(stems[:_MOST_NAMED]) + (", ..." if len(stems) > _MOST_NAMED else "")
    return clean_line(f"{len(stems)} of {count} problems have no candidate in {folder}: {named}")


@dataclass
class _Batch:
    """Candidates that are judged one after the other with the same settings."""

    judge: "Judge"
    settings: JudgementSettings
    out: Path | None
    resume: bool

    def run(self, jobs: "list[Job]", as_json: bool) -> "list[Record]":
        """Return the records in order; each is shown as soon as it is made. Ctrl+C ends the command."""
        from pkb.cli._progress import Bar, open_display
        from pkb.cli._terminal import format_details, format_record

        records: list[Record] = []
        bar = Bar(len(jobs), "starting ranks")
        try:
            with open_display(as_json) as display:
                display.render_status = bar.render
                for setup, one, stored in jobs:
                    folder = self.out / setup.problem.stem / one.name if self.out else None
                    kept = self._find_earlier(folder, setup, one) if self.resume and folder else None
                    record = kept or self._judge(setup, one, stored, folder, bar.describe)
                    records.append(record)
                    bar.advance()
                    line = format_record(record, kept=kept is not None)
                    display.report(line, record.to_fields, format_details(record))
        except KeyboardInterrupt:
            exit_interrupted(f"{len(records)} of {len(jobs)} judged, no rank left running")
        return records

    def _judge(
        self, setup: "Setup", one: "Candidate", stored: "Stored", folder: Path | None, show: Callable[[str], None]
    ) -> "Record":
        name, settings = setup.problem.stem, replace(self.settings, stored=stored)
        return self.judge.judge(setup, one, settings, out=folder, progress=lambda step: show(f"{name}: {step}"))

    def _find_earlier(self, folder: Path, setup: "Setup", one: "Candidate") -> "Record | None":
        from pkb.runs import find_matching_record

        # The judgement itself decides where the weights come from.
        asked = {key: value for key, value in setup.facts().items() if key != "state"} | {"track": self.settings.track}
        timed = self.settings.rigor is not None
        return find_matching_record(folder, one.digest, self.judge.platform.name, asked, timed=timed)


def _choose_rigor(wanted: bool, name: str | None, warm_cache: bool) -> Rigor | None:
    """Return how much to time; None if no option asks for times."""
    chosen = replace(find_rigor(name or "quick"), warm_cache=warm_cache)
    return chosen if wanted or name or warm_cache else None


def _read_times(setup: "Setup", judge: "Judge", baselines: list[str], rigor: Rigor, store: Path | None) -> "Stored":
    from pkb.judge.timing.baseline_store import describe_times, find_baselines, find_default_store

    return find_baselines(store or find_default_store(), describe_times(setup, judge.platform), baselines, rigor.name)


def _check_profiler(name: str | None, out: Path | None) -> bool:
    """Return whether candidates are profiled."""
    if name == "ncu":
        raise UsageError("ncu changes how kernels run; use `pkb dryrun PROBLEM --candidate FILE --profiler ncu`")
    if name and out is None:
        raise UsageError("--profile writes a trace per candidate; name a folder for the traces with --out DIR")
    return name is not None


def _find_candidates(
    problems: "list[Problem]", candidate: str | None, folder: Path | None, backend: str | None
) -> "list[tuple[Problem, Candidate]]":
    from pkb.candidate import Candidate

    if (candidate is None) == (folder is None):
        raise UsageError("name what to judge: either --candidate FILE, or --solutions-dir DIR with --backend NAME")
    if folder is not None:
        files = _find_solutions(folder, problems, backend)
        return [(p, Candidate.read(files[p.stem], backend)) for p in problems if p.stem in files]
    if candidate == "reference":
        return [(p, Candidate.reference(p)) for p in problems]
    one = Candidate.read(Path(str(candidate)), backend)
    return [(p, one) for p in problems]


def _find_solutions(folder: Path, problems: "list[Problem]", backend: str | None) -> dict[str, Path]:
    """Return the candidates' files by their problems' stems; problems without a file are left out.

    Raises UsageError where no problem has one.
    """
    from pkb.backends import find_backend

    if backend is None:
        raise UsageError("--solutions-dir needs --backend: files are named <problem>_<backend>.py")
    suffix = f"_{find_backend(backend).name}.py"
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; --solutions-dir takes the folder of the candidates' files")
    paths = {problem.stem: folder / f"{problem.stem}{suffix}" for problem in problems}
    found = {stem: path for stem, path in paths.items() if path.is_file()}
    if not found:
        raise UsageError(
            f"no {next(iter(paths.values()))}; name only problems that have a file there, or write the file"
        )
    return found


def _make_tolerance(atol: float | None, rtol: float | None) -> Tolerance | None:
    return None if atol is None and rtol is None else Tolerance(atol or 0.0, rtol or 0.0)
