"""Runs an agent's attempt in a folder with a shell and a judge socket, and takes candidate.py however it ended."""

import asyncio
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pkb.agent import client
from pkb.agent.judge_socket import JudgeSocket
from pkb.agent.shell import Shell
from pkb.base.foreign_files import parse_json, read_own_file
from pkb.base.paths import find_cache_folder
from pkb.base.plain_files import read_plain_file
from pkb.base.removal import remove_tree
from pkb.errors import UsageError
from pkb.generate.author import WrittenAnswer
from pkb.generate.budget import Budget
from pkb.generate.experiment import Experiment
from pkb.generate.model import Model
from pkb.generate.pipeline import Judging
from pkb.generate.sample_files import Turn
from pkb.runs import SOURCE, describe_damage

TRAJECTORY = "trajectory.json"
_MAX_BYTES = 1 << 20
"""The most bytes of a candidate."""
_MAX_TRAJECTORY = 256 << 20
_MAX_DOLLARS = 1e6


class AgentAuthor:
    def __init__(self, model: Model, budget: Budget, judging: Judging, limits: Any, sandbox: str = "auto"):
        """`limits` are AgentLimits, whose module is imported only here."""
        self.driver = import_driver()
        self.model, self.budget, self.judging, self.limits, self.sandbox = model, budget, judging, limits, sandbox

    async def write(self, experiment: Experiment, turn: Turn, prompt: str) -> WrittenAnswer:
        spent_before = _archive_trajectories(turn.folder)
        self.budget.note_cost(turn.path, spent_before)
        limits = self.limits
        if limits.cost is not None:
            limits = replace(limits, cost=limits.cost - spent_before)
        async with self.budget.reserve(limits.cost or 0.0):
            with _make_workplace(experiment) as folder:
                written = await self._attempt(experiment, turn, prompt, folder, limits)
            if written.facts["cost_usd"] is not None:
                written.facts["cost_usd"] += spent_before
            self.budget.note_cost(turn.path, written.facts["cost_usd"])
        return written

    async def _attempt(
        self, experiment: Experiment, turn: Turn, prompt: str, folder: Path, limits: Any
    ) -> WrittenAnswer:
        started, judge = time.monotonic(), JudgeSocket(experiment, self.judging)
        shell = await asyncio.to_thread(Shell, folder, self.sandbox)
        number, loop = experiment.place.number - 1, asyncio.get_running_loop()
        model = self.driver.ModelAdapter(self.model, number, limits, loop)
        commands = self.driver.ShellAdapter(shell, limits, model.deadline)
        system, trajectory = self._write_system_prompt(experiment), turn.folder / TRAJECTORY
        with shell:
            async with judge.open(folder):
                # When this is cancelled, the shell is closed, and the agent's thread ends at its next step.
                ended = await asyncio.to_thread(self.driver.drive, model, commands, system, prompt, trajectory)
        source = _read_candidate(folder / SOURCE)
        facts = {
            "model": self.model.settings.model,
            "finish_reason": ended["exit_status"],
            "tokens": {"prompt": 0, "completion": 0, "reasoning": 0} | model.usage.tokens,
            "cost_usd": model.usage.cost,
            "seconds": round(time.monotonic() - started, 3),
            "agent": {"steps": ended["steps"], "evaluations": judge.evaluations, "sandbox": shell.facts},
            "notes": [f"{ended['exit_status']} after {ended['steps']} steps and {judge.evaluations} evaluations"],
        }
        if source is None:
            facts["notes"].append(f"it left no {SOURCE}")
        return WrittenAnswer(model.usage.last, source, facts)

    def _write_system_prompt(self, experiment: Experiment) -> str:
        limits = {"steps": str(self.limits.steps), "seconds": f"{self.limits.seconds:.0f}"}
        return experiment.texts.fill("agent", "system", limits).strip()


def import_driver() -> Any:
    """Import the module that needs mini-swe-agent, which must print nothing and leave the user's settings alone."""
    os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
    os.environ.setdefault("MSWEA_GLOBAL_CONFIG_DIR", str(find_cache_folder() / "mini-swe-agent"))
    try:
        return importlib.import_module("pkb.agent.mini_swe")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "minisweagent":
            raise
        raise UsageError("`pkb agent` needs mini-swe-agent; install it with: pip install -e '.[agent]'") from error


@contextmanager
def _make_workplace(experiment: Experiment) -> Iterator[Path]:
    """Make a folder with the reference and the program that sends kernels to the judge socket."""
    folder = Path(tempfile.mkdtemp(prefix="pkb-agent-")).resolve()
    try:
        (folder / "reference.py").write_text(experiment.problem.show_source(), encoding="utf-8")
        program = folder / "pkb"
        source = Path(client.__file__).read_text(encoding="utf-8")
        program.write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
        program.chmod(0o755)
        yield folder
    finally:
        remove_tree(folder)


def _read_candidate(path: Path) -> str | None:
    """Return the candidate if it is a plain file of moderate size: the agent could have put anything there."""
    try:
        return read_plain_file(path, _MAX_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return None


def _archive_trajectories(folder: Path) -> float:
    """Rename the trajectory of an attempt that was cut off; return what all earlier attempts have cost."""
    latest = folder / TRAJECTORY
    earlier = sorted(folder.glob("trajectory-*.json"))
    if os.path.lexists(latest):
        earlier.append(latest.rename(folder / f"trajectory-{len(earlier) + 1}.json"))
    return sum(map(_read_cost, earlier))


def _read_cost(trajectory: Path) -> float:
    try:
        cost = parse_json(read_own_file(trajectory, _MAX_TRAJECTORY))["info"]["model_stats"]["instance_cost"]
        if type(cost) not in (int, float) or not 0 <= cost <= _MAX_DOLLARS:
            raise ValueError(f"info.model_stats.instance_cost is no number from 0 to {_MAX_DOLLARS:g}")
        return float(cost)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{trajectory}: {describe_damage(error)}; delete it, or choose another --run") from error
