"""What is printed about a pipeline while it runs."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.text import Text

from pkb.cli._progress import Display, open_display
from pkb.engine import Phase
from pkb.generate.budget import Budget
from pkb.generate.experiment import Experiment
from pkb.generate.pipeline import PipelineObserver
from pkb.generate.sample_files import Turn
from pkb.record import Record

_STAGES = ("waiting", "asking", *Phase, "done")


@contextmanager
def open_reporter(
    experiments: Sequence[Experiment], budget: Budget, judged: bool, as_json: bool
) -> Iterator[PipelineObserver]:
    """Yield an observer that prints what the pipeline finishes; on a terminal it also shows the pipeline's status."""
    with open_display(as_json) as display:
        if not display.is_live:
            yield Reporter(display)
            return
        status = PipelineStatus(experiments, budget, judged)
        display.render_status = lambda: Text(status.describe())
        yield LiveReporter(display, status)


class PipelineStatus:
    """How many samples are in which stage, how many are right, what they cost, and how long the rest may take."""

    def __init__(self, experiments: Sequence[Experiment], budget: Budget, judged: bool):
        self.budget = budget
        self._lock = threading.Lock()
        self._stages = {experiment.place.folder: "waiting" for experiment in experiments}
        self._right = {e.place.folder for e in experiments if judged and (best := e.find_best()) and best[1].correct}
        self._judged = judged
        self._turns = sum(len(experiment.turns) for experiment in experiments)
        self._earlier = sum(self._is_finished(turn) for experiment in experiments for turn in experiment.turns)
        self._done, self._start = 0, time.monotonic()

    def set_stage(self, experiment: Experiment, stage: str) -> None:
        with self._lock:
            self._stages[experiment.place.folder] = stage

    def count_answer(self) -> None:
        """Count an answer; it finishes a turn that is not judged."""
        with self._lock:
            self._done += not self._judged

    def count_record(self, experiment: Experiment, correct: bool) -> None:
        """Count a record; it finishes a turn that is judged."""
        with self._lock:
            self._done += self._judged
            if correct:
                self._right.add(experiment.place.folder)

    def describe(self) -> str:
        with self._lock:
            counts = Counter(self._stages.values())
            stages = ", ".join(f"{counts[stage]} {stage}" for stage in _STAGES if counts[stage])
            turns = f"{self._earlier + self._done} of {self._turns} answers"
            parts = [stages, turns, f"{len(self._right)} of {len(self._stages)} right"]
            return "; ".join([*parts, f"$ {self.budget.sum_costs():.2f}", self._estimate()])

    def _estimate(self) -> str:
        """Return how long the rest takes at the speed of this process so far."""
        left = self._turns - self._earlier - self._done
        if not self._done or not left:
            return "estimating the time left" if left else "done"
        seconds = left * (time.monotonic() - self._start) / self._done
        return f"about {timedelta(seconds=round(seconds))} left"

    def _is_finished(self, turn: Turn) -> bool:
        return turn.read_record() is not None if self._judged else turn.path.is_file()


class Reporter(PipelineObserver):
    """Reports every answer and every record."""

    def __init__(self, display: Display):
        self._display = display

    def on_answer(self, experiment: Experiment, turn: Turn, facts: dict[str, Any]) -> None:
        cost = "" if facts["cost_usd"] is None else f"  $ {facts['cost_usd']:.4f}"
        figures = f"{facts['tokens']['completion']} tokens{cost}  {facts['seconds']:.1f} s"
        line = f"{_name_turn(experiment, turn)}  {figures}  {'; '.join(facts['notes'])}"
        self._display.report(line, lambda: facts)

    def on_record(self, experiment: Experiment, turn: Turn, record: Record) -> None:
        number = {"turn": turn.number} if experiment.method.feedback else {}
        line = f"{record.verdict}  {_name_turn(experiment, turn)}"
        self._display.report(line, lambda: record.to_fields() | number, [record.reason])


class LiveReporter(Reporter):
    """Keeps the status up to date as well."""

    def __init__(self, display: Display, status: PipelineStatus):
        super().__init__(display)
        self._status = status

    def on_stage(self, experiment: Experiment, stage: str) -> None:
        self._status.set_stage(experiment, stage)

    def on_answer(self, experiment: Experiment, turn: Turn, facts: dict[str, Any]) -> None:
        self._status.count_answer()
        super().on_answer(experiment, turn, facts)

    def on_record(self, experiment: Experiment, turn: Turn, record: Record) -> None:
        self._status.count_record(experiment, record.correct)
        super().on_record(experiment, turn, record)


def _name_turn(experiment: Experiment, turn: Turn) -> str:
    which = f"  turn {turn.number}" if experiment.method.feedback else ""
    return f"{experiment.place.problem}  {experiment.place.name}{which}"
