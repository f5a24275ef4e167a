"""A run of one model against our provider, inside the tests' own process."""

import asyncio
import json
from pathlib import Path
from typing import Any

from helpers.server import SOLUTIONS, Provider
from pkb.generate.author import Sampler
from pkb.generate.budget import Budget
from pkb.generate.experiment import Method, plan
from pkb.generate.model import Model, Patience, Price, Settings
from pkb.generate.pipeline import Judging, Pipeline, Tally
from pkb.generate.prompt import Wanted
from pkb.problems.suite import find_suite

MODEL = Wanted("triton", "fp32", None, examples=0)
TRITON = Wanted("triton", "fp32", None, nproc=2, size="tiny", examples=0)
PRICE = Price(1e-6, 2e-6)
COST = 1000 * PRICE.prompt + 500 * PRICE.completion


class Run:
    def __init__(self, provider: Provider, folder: Path):
        self.provider, self.folder = provider, folder

    def __call__(
        self,
        behaviour: str,
        problems: str = "1",
        samples: int = 1,
        timeout_s: float = 60.0,
        limit: float | None = None,
        concurrency: int = 8,
        judging: Judging | None = None,
        method: Method | None = None,
        wanted: Wanted = TRITON,
        suite: str = "parallel",
        **settings: Any,
    ) -> Tally:
        asked = Settings(f"openai/{behaviour}", **settings)
        patience = Patience(timeout_s, retries=2, first_wait_s=0.01)
        model = Model(asked, patience, self.provider.url, PRICE)
        experiments = plan(find_suite(suite).select(problems), wanted, asked, samples, self.folder, method)
        author = Sampler(model, Budget(self.folder, limit))
        return asyncio.run(Pipeline(author, concurrency=concurrency, judging=judging).run(experiments))

    def sample(self, behaviour: str, problem: str = "1_allreduce", number: int = 1) -> Path:
        return self.folder / problem / f"openai-{behaviour}-{number}"

    def facts(self, behaviour: str) -> dict[str, Any]:
        return json.loads((self.sample(behaviour) / "sample.json").read_text())


def shipped(problem: str) -> str:
    return (SOLUTIONS / f"{problem}_triton.py").read_text()
