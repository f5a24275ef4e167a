"""mini-swe-agent, with our model and our shell. Imported only to be used: the package is optional."""

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
from pkb.generate.model import Answer, Message, Model
from pkb.generate.redact import without_secrets

SUBMIT = "submit"
"""The command that ends an attempt."""
_COMMAND = re.compile(r"^```(?:bash|sh)\s*\n(.*?)\n```", re.DOTALL | re.MULTILINE)
_SPOKEN = ("system", "user", "assistant")


@dataclass(frozen=True)
class Limits:
    """Of one attempt."""

    steps: int = 30
    seconds: float = 3600.0
    command_s: float = 600.0
    """For one command."""
    cost: float | None = None
    """In dollars. A request that could exceed it is not made."""


@dataclass
class Spent:
    tokens: dict[str, int] = field(default_factory=dict)
    cost: float | None = 0.0
    """None once an answer came whose price nobody knows."""
    last: str = ""
    """What the model said last."""

    def add(self, answer: Answer) -> None:
        self.tokens = {name: self.tokens.get(name, 0) + count for name, count in answer.tokens.items()}
        self.cost = None if self.cost is None or answer.cost_usd is None else self.cost + answer.cost_usd
        self.last = answer.text


class ModelSeat:
    """Our model, where mini-swe-agent expects one. It is asked on the pipeline's loop, from the agent's thread."""

    def __init__(self, model: Model, number: int, limits: Limits, loop: asyncio.AbstractEventLoop):
        self.config: Any = None
        self.model, self.number, self.limits, self.loop = model, number, limits, loop
        self.spent = Spent()
        self.deadline = time.monotonic() + limits.seconds

    def query(self, messages: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        spoken = [{"role": m["role"], "content": m["content"]} for m in messages if m["role"] in _SPOKEN]
        self._refuse_if_dear(spoken)
        answer = self._answer(spoken)
        self.spent.add(answer)
        extra = {"cost": answer.cost_usd or 0.0, "tokens": answer.tokens, "retried": answer.retried}
        message = {"role": "assistant", "content": answer.text, "extra": extra}
        commands = _COMMAND.findall(answer.text)
        if len(commands) != 1:
            advice = f"Write exactly one command, in one block that begins with ```bash; there were {len(commands)}."
            raise FormatError(message, {"role": "user", "content": advice})
        return message | {"extra": extra | {"actions": [{"command": commands[0]}]}}

    def _answer(self, messages: Sequence[Message]) -> Answer:
        left = self.deadline - time.monotonic()
        asking = asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(self.model.ask(messages, self.number), max(left, 0.0)), self.loop
        )
        try:
            return asking.result()
        except TimeoutError:
            raise TimeExceeded(_exit("TimeExceeded")) from None

    def _refuse_if_dear(self, messages: Sequence[Message]) -> None:
        if self.limits.cost is not None:
            most = self.model.most("".join(message["content"] for message in messages))
            if (self.spent.cost or 0.0) + most > self.limits.cost:
                raise LimitsExceeded(_exit("CostExceeded"))

    def format_message(self, **message: Any) -> dict[str, Any]:
        return message

    def format_observation_messages(
        self, message: dict[str, Any], outputs: list[dict[str, Any]], template_vars: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        return [{"role": "user", "content": output["said"], "extra": {"code": output["code"]}} for output in outputs]

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        return {}

    def serialize(self) -> dict[str, Any]:
        return {"info": {"config": {"model": self.model.settings.model}}}


class ShellSeat:
    """Our shell, where mini-swe-agent expects an environment."""

    def __init__(self, shell: Shell, limits: Limits, deadline: float):
        self.config: Any = None
        self.shell, self.limits, self.deadline = shell, limits, deadline

    def execute(self, action: dict[str, Any], cwd: str = "") -> dict[str, Any]:
        if action["command"].strip() == SUBMIT:
            raise Submitted(_exit("Submitted"))
        seconds = max(min(self.limits.command_s, self.deadline - time.monotonic()), 0.0)
        found = self.shell.run(action["command"], seconds)
        ended = f"ended after {seconds:.0f} s" if found["code"] is None else f"exit code {found['code']}"
        return {"code": found["code"], "said": f"{found['output'].rstrip()}\n[{ended}]"}

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        return {}

    def serialize(self) -> dict[str, Any]:
        return {"info": {"config": {"sandbox": self.shell.facts}}}


class Driver(DefaultAgent):
    """mini-swe-agent's loop; its trajectory is written whole, and without keys."""

    def save(self, path: Path | None, *more: dict[str, Any]) -> dict[str, Any]:
        data = self.serialize(*more)
        if path:
            write_whole(path, without_secrets(json.dumps(data, indent=1)) + "\n")
        return data


def drive(model: ModelSeat, shell: ShellSeat, system: str, task: str, trajectory: Path) -> dict[str, Any]:
    """Until it submits or a limit ends it: its exit status, and how many requests it made."""
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


def _exit(status: str) -> dict[str, Any]:
    return {"role": "exit", "content": status, "extra": {"exit_status": status, "submission": ""}}
