"""A limit on what a run may cost: a request that could exceed it is not made."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_ANSWERS = ("*/*/sample.json", "*/*/turns/*/sample.json")


class BudgetSpent(Exception):
    pass


class Budget:
    """Counts what all samples of a run have cost, whoever asked for them, and what this process has under way."""

    def __init__(self, run: Path, limit: float | None = None):
        self.run, self.limit = run, limit
        self._costs: dict[Path, float] = {}
        self._reserved = 0.0
        self._changed = asyncio.Condition()

    def spent(self) -> float:
        for pattern in _ANSWERS:
            for file in self.run.glob(pattern):
                if file not in self._costs:
                    self._costs[file] = json.loads(file.read_text()).get("cost_usd") or 0.0
        return sum(self._costs.values())

    def note(self, answer: Path, cost: float | None) -> None:
        """What an answer has cost so far, by the path of its sample.json, which need not be there yet."""
        self._costs[answer] = cost or 0.0

    @asynccontextmanager
    async def reserved(self, most: float) -> AsyncIterator[None]:
        """Set the most that a request can cost aside while it is under way; wait for others where both are too much.

        Raises BudgetSpent when it alone would be.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._fits(most))
            self._reserved += most
        try:
            yield
        finally:
            self._reserved -= most
            async with self._changed:
                self._changed.notify_all()

    def _fits(self, most: float) -> bool:
        spent = self.spent()
        if self.limit is not None and spent + most > self.limit:
            raise BudgetSpent(
                f"the next answer could exceed --max-cost {self.limit:g} ($ {spent:.4f} are spent, it may cost "
                f"$ {most:.4f}); raise it and run the same command to go on"
            )
        return self.limit is None or spent + self._reserved + most <= self.limit
