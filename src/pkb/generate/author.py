"""Authors write candidates. The author here asks a model once per turn; `pkb.agent` has another one."""

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from pkb.generate.budget import Budget
from pkb.generate.experiment import Experiment
from pkb.generate.extract import extract
from pkb.generate.model import Model
from pkb.generate.sample_files import Turn


@dataclass(frozen=True)
class WrittenAnswer:
    response: str
    candidate: str | None
    facts: dict[str, Any]
    """Entries for sample.json: tokens, cost_usd, seconds, notes, …"""


class Author(Protocol):
    async def write(self, experiment: Experiment, turn: Turn, prompt: str) -> WrittenAnswer:
        """Return the answer for one turn. Raises BudgetSpent, AskFailed, or UsageError when no request can succeed."""


class Sampler:
    def __init__(self, model: Model, budget: Budget):
        self.model, self.budget = model, budget

    async def write(self, experiment: Experiment, turn: Turn, prompt: str) -> WrittenAnswer:
        max_cost = self.model.compute_max_cost(prompt) if self.budget.limit is not None else 0.0
        async with self.budget.reserve(max_cost):
            answer = await self.model.ask([{"role": "user", "content": prompt}], experiment.place.number - 1)
            self.budget.note_cost(turn.path, answer.cost_usd)
        facts = asdict(answer)
        found = extract(facts.pop("text"), answer.finish_reason, experiment.problem.entry)
        return WrittenAnswer(answer.text, found.source, facts | {"notes": found.notes})
