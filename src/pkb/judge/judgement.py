"""One judgement: problem and candidate in, record out. Read this file top to bottom for the whole story."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pkb.candidate import Candidate
from pkb.judge.artifacts import save_artifacts
from pkb.judge.correctness.check import check_facts, check_values
from pkb.judge.correctness.conduct import check_conduct, check_first_result, describe_left_processes
from pkb.judge.correctness.orders import order_trial, wait_until_drawn
from pkb.judge.correctness.results import Outputs, collect_results, fetch_tensors
from pkb.judge.own_errors import explain_exception
from pkb.judge.profiling.trace import Profile, make_profile, take_profile
from pkb.judge.profiling.vendor_kernels import check_kernels
from pkb.judge.resources import Resources
from pkb.judge.screening import admit
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import BY_SEED, HIDDEN, PROBE, Setup
from pkb.judge.state import State
from pkb.judge.timing.aa_control import Control, needs_control, open_reference
from pkb.judge.timing.measure import conclude, measure
from pkb.judge.worlds.world import World
from pkb.problems.suite import label_suite
from pkb.provenance import describe_environment
from pkb.record import ORACLE, Environment, Pace, Record, SetupFacts
from pkb.runs import save_record
from pkb.settings import JudgementSettings, Rigor, Track
from pkb.speedup import add_stored_baselines
from pkb.trial import Trial

Progress = Callable[[str], None]
_EXTRA = {HIDDEN: " + a hidden size", PROBE: " + a probe"}


class Judgement:
    def __init__(
        self,
        resources: Resources,
        setup: Setup,
        candidate: Candidate,
        settings: JudgementSettings,
        progress: Progress,
    ):
        self.resources, self.candidate, self.settings = resources, candidate, settings
        self.setup = resources.draw_hidden_size(setup)
        self.progress = progress
        self.state = State()
        self.environment = Environment(resources.platform.name)

    def run(self, out: Path | None = None) -> Record:
        """Judge the candidate, and write the record to `out`. Whatever happens is a verdict, also in the judge."""
        if out is None or self._attempt(partial(self.resources.hide_records, out), "judge"):
            self._attempt(self._judge, "judge")
        # Who gives up a judgement, or interrupts it from another thread, wants no record of it.
        self.progress("record")
        self._attempt(self._describe_environment, "environment", verdict_before=self.state.verdict)
        record = self._make_record()
        if out and not self._attempt(partial(self._save, out, record), "record-files", verdict_before=record.verdict):
            record = self._make_record()
            self._attempt(partial(save_record, out, record, self.candidate.source), "record-files")
        return record

    def _attempt(self, step: Callable[[], None], check: str, **facts: Any) -> bool:
        """Take a step; return whether it succeeded. Only here does an exception become a verdict."""
        try:
            step()
        except Exception as error:
            failure = explain_exception(error, check, **facts)
            self.state.fail(failure)
            self.resources.recover(failure)
            return False
        return True

    def _judge(self) -> None:
        self.resources.forget_dead_nursery()
        self._screen()
        self._build()
        self._run_reference(self.setup)
        self._run_candidate()
        if self.settings.profile:
            self._profile()

    def _screen(self) -> None:
        """Look at the source: some candidates never run."""
        if self.settings.screen:
            self.state.warnings = admit(self.candidate, self.settings.track)
            self.state.screened = True

    def _build(self) -> None:
        """Compile the candidate's extensions, while no rank holds a GPU."""
        self.resources.build(self.setup, self.candidate, self.state, on_compile=partial(self.progress, "build"))

    def _run_reference(self, setup: Setup) -> None:
        """Compute what is expected in every trial, unless an earlier judgement did."""
        self.progress("reference")
        resources, timed = self.resources, self.settings.rigor is not None
        with self.state.time_phase("reference"):
            resources.pool.begin(setup.world, timed, reference_known=setup in resources.references)
            self.state.reference = resources.references.get(setup, resources.pool, resources.seeds)

    def _run_candidate(self) -> None:
        """Load the candidate, check every trial and its conduct, then time it. Raises the first Failure."""
        resources, rigor = self.resources, self.settings.rigor
        phase, opened = self.state.time_phase("candidate"), resources.open_candidate_world(self.setup, self.state)
        with phase, opened as world, ExitStack() as stack:
            control = None
            if rigor and needs_control(self.setup, resources.platform):
                # Before the candidate is loaded: afterwards nothing that happens in this world can be trusted.
                with resources.pool.quiet():
                    control = stack.enter_context(self._open_reference(world, rigor))
            agreed = resources.load(world, self.setup, self.candidate, self.state, self.settings.track)
            if agreed != self.setup:
                self._run_reference(agreed)
            self._check_trials(world, agreed)
            self._check_conduct(world, agreed, with_kernels=rigor is None)
            if rigor:
                self._time(world, control or stack.enter_context(self._open_reference(None, rigor)), agreed)
            if left := world.end():
                raise describe_left_processes(left)
            resources.pool.refill()

    def _check_trials(self, world: World, setup: Setup) -> None:
        """Compare the results of every trial; the next one runs while values are compared."""
        expected, tolerance, seeds = self.state.expected, self.settings.tolerance, self.resources.seeds
        first: Outputs = {}
        trials = setup.all_trials
        self._order_trial(world, setup, trials[0])
        for number, trial in enumerate(trials, start=1):
            self.progress(f"trial {number} of {len(trials)}")
            self.state.trial = trial
            wait_until_drawn(world, setup, self._counts_calls(setup, trial))
            results = collect_results(world, setup, str(trial))
            # The tensors are fetched only when their shapes are the expected ones.
            check_facts(results, expected, trial)
            self.state.strided_outputs |= {k for r in results for k, leaf in enumerate(r.leaves) if leaf.is_strided}
            outputs = fetch_tensors(world, setup, seeds, trial, results)
            if number < len(trials):
                self._order_trial(world, setup, trials[number])
            check_values(results, outputs, expected, trial, tolerance)
            self.state.outputs = outputs
            first = first or outputs
        check_first_result(world, setup, seeds, expected, first)

    def _order_trial(self, world: World, setup: Setup, trial: Trial) -> None:
        counts, delay = self._counts_calls(setup, trial), self.resources.platform.longest_delay_s
        order_trial(world, setup, self.resources.seeds, trial, delay, counts)

    def _counts_calls(self, setup: Setup, trial: Trial) -> bool:
        """Whether library calls are counted, at some microseconds per operator: once is enough where none is barred."""
        return trial == setup.all_trials[0] or self.settings.track is Track.SCRATCH

    def _check_conduct(self, world: World, setup: Setup, with_kernels: bool) -> None:
        """Conclude from what the ranks noticed besides results: processes, threads, patches, library calls.

        The profiler that names kernels makes every later launch slower, so that it comes after timing.
        """
        self.state.library_calls = check_conduct(world, self.settings.track, setup.limits.trial_s)
        if with_kernels and self.settings.track is Track.SCRATCH and self.resources.platform.has_kernel_profiler:
            check_kernels(world, setup, self.resources.seeds)

    def _open_reference(self, world: World | None, rigor: Rigor) -> AbstractContextManager[Control]:
        resources, worlds = self.resources, 2 + len(self.settings.baselines)
        expected, pool, scratch = self.state.expected, resources.pool, self.settings.track is Track.SCRATCH
        return open_reference(world, self.setup, Seeds(), expected, pool, rigor, worlds, scratch)

    def _time(self, world: World, control: Control, setup: Setup) -> None:
        """Time the candidate in turns with the reference; when the clocks have stopped, check the sampled outputs."""
        self.progress("timing")
        expected, pool = self.state.expected, self.resources.pool
        with pool.quiet():
            measured = measure(world, control, setup, expected, pool, self.settings.baselines)
            self._count_again(world, setup)
            # All of the device's memory is the reference's now: its oracle needs several times what a call does.
            world.release_memory()
            check_conduct(world, self.settings.track, setup.limits.trial_s)
            world.leave()
        timing = conclude(measured, expected)
        spread = self.resources.platform.estimate_spread(timing.candidate_us, waits=timing.waits)
        self.state.timing = add_stored_baselines(timing, self.settings.stored, spread)

    def _count_again(self, world: World, setup: Setup) -> None:
        """Count the library calls of one more trial in the track scratch: those before may have been for show."""
        if self.settings.track is Track.SCRATCH:
            trial = setup.all_trials[0]
            self._order_trial(world, setup, trial)
            wait_until_drawn(world, setup, self._counts_calls(setup, trial))
            collect_results(world, setup, "the trial after timing")
            self._check_conduct(world, setup, with_kernels=True)

    def _profile(self) -> None:
        """Profile a few calls in a world of its own, once the verdict stands; a failure here is only noted."""
        self.progress("profiling")
        with self.state.time_phase("profile"):
            try:
                self.state.profile = self._take_profile()
            except Exception as error:
                failure = explain_exception(error)
                self.resources.recover(failure)
                self.state.profile = make_profile({}, [failure.reason])

    def _take_profile(self) -> Profile:
        resources, state = self.resources, State(libraries=self.state.libraries)
        with resources.open_candidate_world(self.setup, state) as world:
            agreed = resources.load(world, self.setup, self.candidate, state)
            profile = take_profile(world, agreed, resources.seeds)
            world.end()
            return profile

    def _describe_environment(self) -> None:
        self.environment = describe_environment(self.resources.platform, self.resources.sandbox.facts)

    def _save(self, out: Path, record: Record) -> None:
        save_artifacts(out, record, self.candidate, self.state)

    def _make_record(self) -> Record:
        state, setup = self.state, replace(self.setup, state=self.state.weights or self.setup.state)
        return Record(
            problem=setup.problem.stem,
            category=setup.problem.category,
            candidate=self.candidate.describe(),
            setup=_describe_setup(setup, self.settings, state.screened),
            verdict=state.verdict,
            reason=state.reason or _describe_success(setup, state.weights),
            evidence=state.evidence,
            warnings=state.warnings,
            pace=state.timing.pace if state.timing else Pace.UNTIMED,
            timing=state.timing,
            strided_outputs=sorted(state.strided_outputs),
            library_calls=state.library_calls,
            profile=state.profile.summary if state.profile else None,
            environment=self.environment,
            seconds=state.seconds,
        )


def _describe_success(setup: Setup, weights: str) -> str:
    count = len(setup.all_trials) * setup.calls * setup.world
    parts = [setup.trials, "trials x", setup.calls, "calls"] + (["x", setup.world, "ranks"] if not weights else [])
    extra = "".join(words for trial, words in _EXTRA.items() if trial in setup.extra)
    own = "; its weights are its constructor's" if weights == BY_SEED and not setup.published else ""
    return f"all {count} results right ({' '.join(map(str, parts))}{extra}{own})"


def _describe_setup(setup: Setup, settings: JudgementSettings, screened: bool) -> SetupFacts:
    return SetupFacts(
        **setup.facts(),
        suite=label_suite(setup.problem),
        trials=setup.trials,
        calls=setup.calls,
        compare=settings.tolerance or ORACLE,
        limits=setup.limits,
        track=settings.track,
        screened=screened,
    )
