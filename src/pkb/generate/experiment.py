"""One sample of one problem: a state machine whose state is what its files say, and nothing else.

asked → answered → judged, then the next turn, until all turns are judged. Between turns the sample's own folder is
brought up to date with the best of them.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from pkb.base.atomic import write_whole
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.generate.feedback import follow_up
from pkb.generate.model import Settings
from pkb.generate.prompt import Wanted, prompt_for
from pkb.generate.sample_files import Place, Turn, digest
from pkb.generate.template import Template
from pkb.problems.problem import Problem
from pkb.record import Record
from pkb.runs import RECORD, SOURCE


class Stage(StrEnum):
    """What has to be done next."""

    ASK = "ask"
    JUDGE = "judge"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Method:
    """How an answer comes about, as far as it is no matter of the model or the prompt."""

    turns: int = 1
    feedback: str | None = None
    """What a turn is told of the one before: g, ge or gep. None: there is one turn only, in the sample's own folder."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else tells samples of one kind from those of another."""
    ending: str = "answer"
    """The last section of the prompt."""

    @property
    def identity(self) -> dict[str, Any]:
        return self.facts | ({"feedback": self.feedback} if self.feedback else {})


@dataclass(frozen=True)
class Experiment:
    place: Place
    problem: Problem
    prompt: str
    """Of the first turn."""
    wanted: Wanted
    settings: Settings
    method: Method = field(default_factory=Method)

    @cached_property
    def texts(self) -> Template:
        return self.wanted.texts(self.problem)

    @cached_property
    def turns(self) -> list[Turn]:
        if self.method.feedback is None:
            return [Turn(self.place.folder)]
        return [Turn(self.place.folder / "turns" / str(n), n) for n in range(1, self.method.turns + 1)]

    def next(self, judged: bool) -> tuple[Stage, Turn]:
        """What has to be done next, where answers are `judged` too, and for which turn."""
        for turn in self.turns:
            if not turn.path.is_file():
                return Stage.ASK, turn
            if judged and not turn.record():
                return Stage.JUDGE, turn
        return Stage.NOTHING, self.turns[-1]

    def prompt_of(self, turn: Turn) -> str:
        if turn.number == 1:
            return self.prompt
        return follow_up(self.prompt, self.turns[turn.number - 2], self.texts, self.method.feedback or "")

    def asked(self, prompt: str) -> dict[str, Any]:
        """What identifies a request: an answer that says otherwise is not this one's."""
        kernel = {"backend": self.wanted.backend, "precision": self.wanted.precision, "track": self.wanted.track}
        return asdict(self.settings) | kernel | self.method.identity | {"prompt_sha256": digest(prompt)}

    def candidate(self, turn: Turn) -> Candidate:
        """An answer without code is judged as an empty file: it counts."""
        return Candidate.of(turn.source, self.place.name, self.wanted.backend)

    def best(self) -> tuple[Turn, Record] | None:
        """Right before wrong, then by the speed-up that is sure, then the later one; None where none is judged."""
        judged = [(turn, record) for turn in self.turns if (record := turn.record())]
        return max(judged, key=lambda pair: (*_merit(pair[1]), pair[0].number), default=None)

    def keep_best(self) -> None:
        """Let the sample's own folder hold the best turn. Doing it again changes nothing."""
        best = self.best() if self.method.feedback else None
        if best is None:
            return
        turn, ours = best[0].folder, self.place.folder
        if (turn / "logs").is_dir():
            shutil.copytree(turn / "logs", ours / "logs", dirs_exist_ok=True)
        for name in (SOURCE, RECORD):
            content = (turn / name).read_bytes()
            if not (ours / name).is_file() or (ours / name).read_bytes() != content:
                write_whole(ours / name, content)

    def refuse_another(self) -> None:
        """Raises UsageError where an answer that is there was asked for otherwise."""
        if self.method.feedback and Turn(self.place.folder).facts():
            raise UsageError(f"{self.place.folder} is no sample in turns; choose another --run")
        if not self.method.feedback and (self.place.folder / "turns").is_dir():
            raise UsageError(f"{self.place.folder} is a sample in turns; choose another --run")
        for turn in self.turns:
            wanted = self.asked(self.prompt)
            if turn.number > 1:
                # What later turns are asked follows from the answers before.
                del wanted["prompt_sha256"]
            there = (turn.facts() or {}).get("asked", wanted)
            if differing := ", ".join(key for key, value in wanted.items() if there.get(key) != value):
                raise UsageError(f"{turn.folder} was asked for otherwise ({differing} differ); choose another --run")


def plan(
    problems: Sequence[Problem],
    wanted: Wanted,
    settings: Settings,
    samples: int,
    run: Path,
    method: Method | None = None,
) -> list[Experiment]:
    """The samples of a run, the first of every problem before the second of any. Raises UsageError where one that is
    there was asked for otherwise."""
    how = method or Method()
    prompts = {problem.stem: prompt_for(problem, wanted, how.ending) for problem in problems}
    found = [
        Experiment(
            Place(run, problem.stem, settings.model, number),
            problem,
            prompts[problem.stem],
            wanted,
            settings,
            how,
        )
        for number in range(1, samples + 1)
        for problem in problems
    ]
    for experiment in found:
        experiment.refuse_another()
    return found


def _merit(record: Record) -> tuple[bool, float]:
    return record.correct, record.timing["interval"][0] if record.timing else 0.0
