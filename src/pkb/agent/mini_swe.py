"""mini-swe-agent with our model and our shell. The package is optional: import this module only to run an agent."""

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minisweagent.agents.default import DefaultAgent
from minisweagent.exceptions import FormatError, LimitsExceeded, Submitted, TimeExceeded

from pkb.agent.shell import Shell
from pkb.base.atomic import write_whole
from pkb.generate.model import Message, Model, ModelAnswer
from pkb.generate.redact import redact_secrets

SUBMIT = "submit"
"""The command that ends an attempt."""
_COMMAND = re.compile(r"^```(?:bash|sh)\s*\n(.*?)\n```", re.DOTALL | re.MULTILINE)
_CHAT_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class AgentLimits:
    """The limits of one attempt."""

    steps: int = 30
    seconds: float = 3600.0
    command_s: float = 600.0
    """Seconds for one command."""
    cost: float | None = None
    """Dollars for the attempt; None for no limit. A request that could exceed the limit is not made."""


@dataclass
class AgentUsage:
    """What an attempt has used so far."""

    tokens: dict[str, int] = field(default_factory=dict)
    cost: float | None = 0.0
    """Dollars; None once the price of an answer was unknown."""
    last: str = ""
    """The model's last answer."""

    def add(self, answer: ModelAnswer) -> None:
        self.tokens = {name: self.tokens.get(name, 0) + count for name, count in answer.tokens.items()}
        self.cost = None if self.cost is None or answer.cost_usd is None else self.cost + answer.cost_usd
        self.last = answer.text


class ModelAdapter:
    """Our model behind the interface that mini-swe-agent expects. The agent's thread calls it; requests run on the
    pipeline's event loop."""

    def __init__(self, model: Model, number: int, limits: AgentLimits, loop: asyncio.AbstractEventLoop):
        self.config: Any = None
        self.model, self.number, self.limits, self.loop = model, number, limits, loop
        self.usage = AgentUsage()
        self.deadline = time.monotonic() + limits.seconds

    def query(self, messages: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        chat = [{"role": m["role"], "content": m["content"]} for m in messages if m["role"] in _CHAT_ROLES]
        self._check_cost(chat)
        answer = self._answer(chat)
        self.usage.add(answer)
        extra = {"cost": answer.cost_usd or 0.0, "tokens": answer.tokens, "retried": answer.retried}
        message = {"role": "assistant", "content": answer.text, "extra": extra}
        commands = _COMMAND.findall(answer.text)
        if len(commands) != 1:
            advice = f"Write exactly one command, in one block that begins with ```bash; there were {len(commands)}."
            raise FormatError(message, {"role": "user", "content": advice})
        return message | {"extra": extra | {"actions": [{"command": commands[0]}]}}

    def _answer(self, messages: Sequence[Message]) -> ModelAnswer:
        left = self.deadline - time.monotonic()
        request = asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(self.model.ask(messages, self.number), max(left, 0.0)), self.loop
        )
        try:
            return request.result()
        except TimeoutError:
            raise TimeExceeded(_make_exit("TimeExceeded")) from None

    def _check_cost(self, messages: Sequence[Message]) -> None:
        """Raise LimitsExceeded where the next answer could exceed the limit."""
        if self.limits.cost is not None:
            max_cost = self.model.compute_max_cost("".join(message["content"] for message in messages))
            if (self.usage.cost or 0.0) + max_cost > self.limits.cost:
                raise LimitsExceeded(_make_exit("CostExceeded"))

    def format_message(self, **message: Any) -> dict[str, Any]:
        return message

    def format_observation_messages(
        self, message: dict[str, Any], outputs: list[dict[str, Any]], template_vars: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        return [{"role": "user", "content": output["text"], "extra": {"code": output["code"]}} for output in outputs]

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        return {}

    def serialize(self) -> dict[str, Any]:
        return {"info": {"config": {"model": self.model.settings.model}}}


class ShellAdapter:
    """Our shell behind the interface that mini-swe-agent expects of an environment."""

    def __init__(self, shell: Shell, limits: AgentLimits, deadline: float):
        self.config: Any = None
        self.shell, self.limits, self.deadline = shell, limits, deadline

    def execute(self, action: dict[str, Any], cwd: str = "") -> dict[str, Any]:
        if action["command"].strip() == SUBMIT:
            raise Submitted(_make_exit("Submitted"))
        seconds = max(min(self.limits.command_s, self.deadline - time.monotonic()), 0.0)
        found = self.shell.run(action["command"], seconds)
        ended = f"ended after {seconds:.0f} s" if found["code"] is None else f"exit code {found['code']}"
        return {"code": found["code"], "text": f"{found['output'].rstrip()}\n[{ended}]"}

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        return {}

    def serialize(self) -> dict[str, Any]:
        return {"info": {"config": {"sandbox": self.shell.facts}}}


class Driver(DefaultAgent):
    """mini-swe-agent's loop. It writes its trajectory atomically and without keys."""

    def save(self, path: Path | None, *more: dict[str, Any]) -> dict[str, Any]:
        data = self.serialize(*more)
        if path:
            write_whole(path, redact_secrets(json.dumps(data, indent=1)) + "\n")
        return data


def drive(model: ModelAdapter, shell: ShellAdapter, system: str, task: str, trajectory: Path) -> dict[str, Any]:
    """Run an agent until it submits or a limit ends it; return its exit status and its number of requests."""
    agent = Driver(
        model,
        shell,
        system_template="{{ system }}",
        instance_template="{{ task }}",
        step_limit=model.limits.steps,
        cost_limit=0.0,
        wall_time_limit_seconds=max(1, int(model.limits.seconds)),
        output_path=trajectory,
    )
    status = agent.run(task, system=system).get("exit_status", "")
    return {"exit_status": status, "steps": agent.n_calls}


def _make_exit(status: str) -> dict[str, Any]:
    return {"role": "exit", "content": status, "extra": {"exit_status": status, "submission": ""}}
