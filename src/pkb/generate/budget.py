"""A limit on what a run may cost: a request that could exceed it is not made."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pkb.generate.sample_files import read_answer_facts

_ANSWERS = ("*/*/sample.json", "*/*/turns/*/sample.json")


class BudgetSpent(Exception):
    pass


class Budget:
    """Adds up what all samples of a run have cost, whichever process asked for them, and what this process may still
    spend on requests under way."""

    def __init__(self, run: Path, limit: float | None = None):
        self.run, self.limit = run, limit
        self._costs: dict[Path, float] = {}
        self._reserved = 0.0
        self._changed = asyncio.Condition()

    def sum_costs(self) -> float:
        """Return the cost of all answers of the run, in dollars."""
        for pattern in _ANSWERS:
            for file in self.run.glob(pattern):
                if file not in self._costs:
                    self._costs[file] = (read_answer_facts(file) or {}).get("cost_usd") or 0.0
        return sum(self._costs.values())

    def note_cost(self, answer: Path, cost: float | None) -> None:
        """Set what an answer has cost so far. `answer` is the path of its sample.json, which need not exist yet."""
        self._costs[answer] = cost or 0.0

    @asynccontextmanager
    async def reserve(self, max_cost: float) -> AsyncIterator[None]:
        """Reserve the most that a request can cost while it is under way, once other requests leave room for it.

        Raises BudgetSpent when the request could exceed the limit by itself.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._has_room(max_cost))
            self._reserved += max_cost
        try:
            yield
        finally:
            self._reserved -= max_cost
            async with self._changed:
                self._changed.notify_all()

    def _has_room(self, max_cost: float) -> bool:
        spent = self.sum_costs()
        if self.limit is not None and spent + max_cost > self.limit:
            raise BudgetSpent(
                f"the next answer could exceed --max-cost {self.limit:g} ($ {spent:.4f} are spent, the answer may cost "
                f"$ {max_cost:.4f}); raise --max-cost and run the same command to go on"
            )
        return self.limit is None or spent + self._reserved + max_cost <= self.limit
