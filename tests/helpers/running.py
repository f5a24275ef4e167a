"""Runs of one model against the tests' provider, inside the tests' own process."""

import asyncio
import json
from pathlib import Path
from typing import Any

from helpers.server import SOLUTIONS, Provider
from pkb.agent.author import AgentAuthor
from pkb.agent.mini_swe import AgentLimits
from pkb.generate.author import Sampler
from pkb.generate.budget import Budget
from pkb.generate.experiment import SamplingMethod, plan
from pkb.generate.model import Model, ModelSettings, Price, RetryPolicy
from pkb.generate.pipeline import Judging, Pipeline, PipelineSummary
from pkb.generate.prompt import KernelRequest
from pkb.problems.suite import find_suite, load_problem

MODEL = KernelRequest("triton", "fp32", None, examples=0)
TRITON = KernelRequest("triton", "fp32", None, nproc=2, size="tiny", examples=0)
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
        method: SamplingMethod | None = None,
        request: KernelRequest = TRITON,
        suite: str = "parallel",
        **settings: Any,
    ) -> PipelineSummary:
        asked = ModelSettings(f"openai/{behaviour}", **settings)
        retry = RetryPolicy(timeout_s, retries=2, first_wait_s=0.01)
        model = Model(asked, retry, self.provider.url, PRICE)
        experiments = plan(find_suite(suite).select(problems), request, asked, samples, self.folder, method)
        author = Sampler(model, Budget(self.folder, limit))
        return asyncio.run(Pipeline(author, concurrency=concurrency, judging=judging).run(experiments))

    def sample(self, behaviour: str, problem: str = "1_allreduce", number: int = 1) -> Path:
        return self.folder / problem / f"openai-{behaviour}-{number}"

    def facts(self, behaviour: str) -> dict[str, Any]:
        return json.loads((self.sample(behaviour) / "sample.json").read_text())


def let_agent_work(
    run: Run,
    judging: Judging,
    behaviour: str,
    limits: AgentLimits | None = None,
    problem: str = "1",
    request: KernelRequest = TRITON,
    **settings: Any,
) -> PipelineSummary:
    """Let an agent that behaves like this work on one sample of a problem."""
    asked = ModelSettings(f"openai/{behaviour}", **settings)
    model = Model(asked, RetryPolicy(60, retries=1, first_wait_s=0.01), run.provider.url, PRICE)
    method = SamplingMethod(facts={"agent": {}}, ending="work")
    experiments = plan([load_problem(problem)], request, asked, 1, run.folder, method)
    author = AgentAuthor(model, Budget(run.folder), judging, limits or AgentLimits())
    return asyncio.run(Pipeline(author, judging=judging).run(experiments))


def read_shipped(problem: str) -> str:
    """Return the Triton kernel that is shipped for a problem."""
    return (SOLUTIONS / f"{problem}_triton.py").read_text()
