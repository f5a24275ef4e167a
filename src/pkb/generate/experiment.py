"""One sample of one problem: a state machine whose state is what its files say, and nothing else.

Each turn is asked for, answered and judged before the next one begins. After each turn the sample's own folder gets the
files of the best turn so far.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from pkb.base.atomic import write_whole
from pkb.base.foreign_files import RECORD_BYTES, SOURCE_BYTES, make_own_folder, read_own_file
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.generate.feedback import write_follow_up
from pkb.generate.model import ModelSettings
from pkb.generate.prompt import KernelRequest, write_prompt
from pkb.generate.sample_files import Place, Turn, compute_digest
from pkb.generate.template import Template
from pkb.problems.problem import Problem
from pkb.record import Record
from pkb.runs import RECORD, SOURCE


class Stage(StrEnum):
    """What has to be done next for a sample."""

    ASK = "ask"
    JUDGE = "judge"
    NOTHING = "nothing"


@dataclass(frozen=True)
class SamplingMethod:
    """How an answer is sampled: number of turns, feedback, and limits of an agent."""

    turns: int = 1
    feedback: str | None = None
    """What a prompt says about the turn before: g, ge or gep. None: one turn only, in the sample's own folder."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Further settings by which samples of one run must agree."""
    ending: str = "answer"
    """The name of the prompt's last section."""

    @property
    def identity(self) -> dict[str, Any]:
        return self.facts | ({"feedback": self.feedback} if self.feedback else {})


@dataclass(frozen=True)
class Experiment:
    place: Place
    problem: Problem
    prompt: str
    """The prompt of the first turn."""
    request: KernelRequest
    settings: ModelSettings
    method: SamplingMethod = field(default_factory=SamplingMethod)

    @cached_property
    def texts(self) -> Template:
        return self.request.load_texts(self.problem)

    @cached_property
    def turns(self) -> list[Turn]:
        if self.method.feedback is None:
            return [Turn(self.place.folder)]
        return [Turn(self.place.folder / "turns" / str(n), n) for n in range(1, self.method.turns + 1)]

    def find_next(self, judged: bool) -> tuple[Stage, Turn]:
        """Return what has to be done next, and for which turn; `judged` says whether answers are judged too."""
        for turn in self.turns:
            if not turn.path.is_file():
                return Stage.ASK, turn
            if judged and not turn.read_record():
                return Stage.JUDGE, turn
        return Stage.NOTHING, self.turns[-1]

    def make_prompt(self, turn: Turn) -> str:
        if turn.number == 1:
            return self.prompt
        return write_follow_up(self.prompt, self.turns[turn.number - 2], self.texts, self.method.feedback or "")

    def identify_request(self, prompt: str) -> dict[str, Any]:
        """Return the settings that identify a request: an answer with other settings is not this sample's."""
        kernel = {"backend": self.request.backend, "precision": self.request.precision, "track": self.request.track}
        return asdict(self.settings) | kernel | self.method.identity | {"prompt_sha256": compute_digest(prompt)}

    def read_candidate(self, turn: Turn) -> Candidate:
        """Return the candidate of a turn. An answer without code is an empty candidate: it counts."""
        return Candidate.of(turn.source, self.place.name, self.request.backend)

    def find_best(self) -> tuple[Turn, Record] | None:
        """Return the best judged turn, or None: correct ones first, then by the low end of the speed-up's interval,
        then the later turn."""
        judged = [(turn, record) for turn in self.turns if (record := turn.read_record())]
        return max(judged, key=lambda pair: (*_make_sort_key(pair[1]), pair[0].number), default=None)

    def keep_best(self) -> None:
        """Copy the best turn's files to the sample's own folder. A second call changes nothing."""
        best = self.find_best() if self.method.feedback else None
        if best is None:
            return
        turn, ours = best[0].folder, self.place.folder
        logs = [Path("logs") / path.name for path in (turn / "logs").glob("rank_*.txt")]
        for name in (*logs, Path(SOURCE), Path(RECORD)):
            content = _read_file(turn / name)
            if content is not None and content != _read_file(ours / name):
                make_own_folder((ours / name).parent)
                write_whole(ours / name, content)

    def check_settings(self) -> None:
        """Raise UsageError where an existing answer was generated with other settings."""
        if self.method.feedback and Turn(self.place.folder).read_facts():
            raise UsageError(f"{self.place.folder} holds a sample without turns; choose another --run")
        if not self.method.feedback and (self.place.folder / "turns").is_dir():
            raise UsageError(f"{self.place.folder} holds a sample in turns; choose another --run")
        for turn in self.turns:
            expected = self.identify_request(self.prompt)
            if turn.number > 1:
                # The prompt of a later turn follows from the answers before it.
                del expected["prompt_sha256"]
            found = (turn.read_facts() or {}).get("asked", expected)
            if differing := ", ".join(key for key, value in expected.items() if found.get(key) != value):
                raise UsageError(f"{turn.folder} was generated with other settings ({differing}); choose another --run")


def _read_file(path: Path) -> bytes | None:
    """Return the content of a file; None for a link, or for anything else that pkb has not written."""
    try:
        return read_own_file(path, max(RECORD_BYTES, SOURCE_BYTES))
    except (OSError, ValueError):
        return None


def plan(
    problems: Sequence[Problem],
    request: KernelRequest,
    settings: ModelSettings,
    samples: int,
    run: Path,
    method: SamplingMethod | None = None,
) -> list[Experiment]:
    """Return the samples of a run, the first of every problem before the second of any.

    Raises UsageError where an existing sample was generated with other settings.
    """
    how = method or SamplingMethod()
    prompts = {problem.stem: write_prompt(problem, request, how.ending) for problem in problems}
    found = [
        Experiment(
            Place(run, problem.stem, settings.model, number),
            problem,
            prompts[problem.stem],
            request,
            settings,
            how,
        )
        for number in range(1, samples + 1)
        for problem in problems
    ]
    for experiment in found:
        experiment.check_settings()
    return found


def _make_sort_key(record: Record) -> tuple[bool, float]:
    return record.correct, record.timing.interval[0] if record.timing else 0.0
