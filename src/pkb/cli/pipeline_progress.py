"""What is heard of a pipeline while it runs: lines, on a terminal with counts below them; or JSON when asked for."""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pkb.engine import Phase
from pkb.generate.budget import Budget
from pkb.generate.experiment import Experiment
from pkb.generate.pipeline import Watch
from pkb.generate.sample_files import Turn
from pkb.record import Record

_STAGES = ("waiting", "asking", *Phase, "done")
_PER_SECOND = 4


@contextmanager
def watching(experiments: Sequence[Experiment], budget: Budget, judged: bool, as_json: bool) -> Iterator[Watch]:
    if as_json:
        yield _Json()
    elif not sys.stdout.isatty():
        yield _Lines()
    else:
        state = Progress(experiments, budget, judged)
        console = Console()
        shown = Live(get_renderable=state.line, console=console, refresh_per_second=_PER_SECOND, transient=True)
        with shown:
            yield _Shown(state, console)


class Progress:
    """Counts: per stage, right so far, what it cost, and when it may be over."""

    def __init__(self, experiments: Sequence[Experiment], budget: Budget, judged: bool):
        self.budget = budget
        self._lock = threading.Lock()
        self._stages = {experiment.place.folder: "waiting" for experiment in experiments}
        self._right = {e.place.folder for e in experiments if judged and (best := e.best()) and best[1].correct}
        self._mark = "record" if judged else "answer"
        self._turns = sum(len(experiment.turns) for experiment in experiments)
        self._there = sum(_finished(turn, self._mark) for experiment in experiments for turn in experiment.turns)
        self._done, self._start = 0, time.monotonic()

    def moved(self, experiment: Experiment, to: str) -> None:
        with self._lock:
            self._stages[experiment.place.folder] = to

    def finished(self, experiment: Experiment, mark: str, right: bool = False) -> None:
        """A turn has come to its end if that is marked by a `mark`."""
        with self._lock:
            self._done += mark == self._mark
            if right:
                self._right.add(experiment.place.folder)

    def text(self) -> str:
        with self._lock:
            counts = Counter(self._stages.values())
            stages = ", ".join(f"{counts[stage]} {stage}" for stage in _STAGES if counts[stage])
            turns = f"{self._there + self._done} of {self._turns} answers"
            parts = [stages, turns, f"{len(self._right)} of {len(self._stages)} right"]
            return "; ".join([*parts, f"$ {self.budget.spent():.2f}", self._remaining()])

    def line(self) -> Text:
        return Text(self.text())

    def _remaining(self) -> str:
        """At the pace of this process so far."""
        left = self._turns - self._there - self._done
        if not self._done or not left:
            return "a while to go" if left else "all there"
        seconds = left * (time.monotonic() - self._start) / self._done
        return f"about {timedelta(seconds=round(seconds))} to go"


def _finished(turn: Turn, mark: str) -> bool:
    return turn.path.is_file() if mark == "answer" else turn.record() is not None


class _Lines(Watch):
    def answered(self, experiment: Experiment, turn: Turn, facts: dict[str, Any]) -> None:
        cost = "" if facts["cost_usd"] is None else f"  $ {facts['cost_usd']:.4f}"
        notes = "; ".join(facts["notes"])
        tokens = facts["tokens"]["completion"]
        self._say(f"{_name(experiment, turn)}  {tokens} tokens{cost}  {facts['seconds']:.1f} s  {notes}")

    def judged(self, experiment: Experiment, turn: Turn, record: Record) -> None:
        self._say(f"{_name(experiment, turn)}  {record.verdict}  {record.reason}")

    def _say(self, line: str) -> None:
        print(line, flush=True)


class _Shown(_Lines):
    """The same lines, above a line that is kept up to date."""

    def __init__(self, state: Progress, console: Console):
        self.state, self.console = state, console

    def moved(self, experiment: Experiment, to: str) -> None:
        self.state.moved(experiment, to)

    def answered(self, experiment: Experiment, turn: Turn, facts: dict[str, Any]) -> None:
        self.state.finished(experiment, "answer")
        super().answered(experiment, turn, facts)

    def judged(self, experiment: Experiment, turn: Turn, record: Record) -> None:
        self.state.finished(experiment, "record", record.correct)
        super().judged(experiment, turn, record)

    def _say(self, line: str) -> None:
        self.console.print(Text(line))


class _Json(Watch):
    def answered(self, experiment: Experiment, turn: Turn, facts: dict[str, Any]) -> None:
        print(json.dumps(facts), flush=True)

    def judged(self, experiment: Experiment, turn: Turn, record: Record) -> None:
        fields = json.loads(record.to_json())
        print(json.dumps(fields | ({"turn": turn.number} if experiment.method.feedback else {})), flush=True)


def _name(experiment: Experiment, turn: Turn) -> str:
    which = f"  turn {turn.number}" if experiment.method.feedback else ""
    return f"{experiment.place.problem}  {experiment.place.name}{which}"
