"""An agent works by itself: what it can reach, what ends it, and what is judged."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

import pkb
from helpers.commands import run_pkb
from helpers.generating import DEADLINE_S, JUDGED, make_words, start_pkb, wait_until
from helpers.running import COST, Run, let_agent_work, read_shipped
from helpers.server import KEY
from pkb.agent.mini_swe import AgentLimits
from pkb.agent.shell import Shell, ShellClosed
from pkb.errors import UsageError
from pkb.generate.pipeline import Judging, PipelineSummary
from pkb.problems.suite import load_problem
from pkb.record import Record


def read_trajectory(run: Run, behaviour: str) -> dict[str, Any]:
    return json.loads((run.sample(behaviour) / "trajectory.json").read_text())


def list_outputs(run: Run, behaviour: str) -> list[str]:
    """Return what the agent's commands printed."""
    return [m["content"] for m in read_trajectory(run, behaviour)["messages"] if "code" in m.get("extra", {})]


def test_an_agent_evaluates_improves_and_is_judged_afresh(run: Run, judging: Judging) -> None:
    assert let_agent_work(run, judging, "worker") == PipelineSummary(answered=1)
    folder = run.sample("worker")
    assert (folder / "candidate.py").read_text() == read_shipped("1_allreduce")
    final = Record.from_json((folder / "record.json").read_text())
    assert final.correct
    assert final.candidate.name == "openai-worker-1"
    evaluated = [Record.from_json((folder / "evals" / n / "record.json").read_text()).verdict for n in "12"]
    assert evaluated == ["WRONG", "CORRECT"]
    first, second = list_outputs(run, "worker")
    assert "WRONG: rank 0, trial 0, call 0, output 0: " in first
    assert "expected" not in first
    assert "0 findings in the track any\n# What the judge saw\n\nCORRECT: all " in second
    facts = run.facts("worker")
    assert facts["agent"]["steps"] == 3
    assert facts["agent"]["evaluations"] == 2
    assert facts["tokens"] == {"prompt": 3000, "completion": 1500, "reasoning": 0}
    assert facts["cost_usd"] == pytest.approx(3 * COST)
    assert facts["finish_reason"] == "Submitted"
    prompt = (folder / "prompt.md").read_text()
    assert "# How you work" in prompt
    assert "# Your answer" not in prompt
    assert let_agent_work(run, judging, "worker").answered == 0, "it was done again"


def test_it_sees_no_key_no_judge_and_no_run(run: Run, judging: Judging) -> None:
    let_agent_work(run, judging, "spy")
    facts = run.facts("spy")
    text = json.dumps(read_trajectory(run, "spy"))
    assert KEY not in text
    assert "OPENAI_API_KEY" not in text.replace("[OPENAI_API_KEY]", "")
    assert load_problem("1_allreduce").show_source().splitlines()[-1] in list_outputs(run, "spy")[0]
    if facts["agent"]["sandbox"]["level"] == "namespaces":
        assert "No module named 'pkb" in list_outputs(run, "spy")[0]
        assert "no network" in list_outputs(run, "spy")[0]
        assert str(run.folder) not in list_outputs(run, "spy")[0]
    assert facts["candidate"] is None, "a link is no candidate"
    assert "it left no candidate.py" in facts["notes"]
    assert Record.from_json((run.sample("spy") / "record.json").read_text()).verdict == "BUILD_FAILED"


@pytest.mark.parametrize(
    ("behaviour", "limits", "status"),
    [
        ("idler", AgentLimits(steps=3), "LimitsExceeded"),
        ("idler", AgentLimits(cost=5 * COST), "CostExceeded"),
        ("sleeper", AgentLimits(seconds=4), "TimeExceeded"),
        ("mumbler", AgentLimits(), "RepeatedFormatError"),
    ],
)
def test_limits_end_it(run: Run, judging: Judging, behaviour: str, limits: AgentLimits, status: str) -> None:
    assert let_agent_work(run, judging, behaviour, limits, max_tokens=500).answered == 1
    facts = run.facts(behaviour)
    assert facts["finish_reason"] == status
    assert limits.cost is None or facts["cost_usd"] <= limits.cost
    assert facts["agent"]["steps"] <= limits.steps


def make_agent_words(run: Run, behaviour: str, *more: str) -> list[str]:
    return make_words(run.provider, run.folder, behaviour, *JUDGED, *more, verb="agent", problems="1")


def test_ctrl_c_leaves_nothing_running_and_the_next_run_goes_on(run: Run) -> None:
    prices = ("--price-in", "1", "--price-out", "2", "--max-cost", "1")
    with start_pkb(make_agent_words(run, "sleeper", *prices)) as process:
        family: list[psutil.Process] = []

        def it_sleeps() -> bool:
            family[:] = psutil.Process(process.pid).children(recursive=True)
            return any("sleep" in one.name() for one in family if one.is_running())

        wait_until(it_sleeps)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert errors.strip() == "interrupted: 0 of 1 samples are there; run the same command to go on"
    assert not psutil.wait_procs(family, timeout=10)[1]
    assert not list(run.folder.rglob("sample.json"))
    ran = run_pkb(*make_agent_words(run, "sleeper", "--max-seconds", "4", *prices))
    assert ran.returncode == 0, ran.stderr
    assert (run.sample("sleeper") / "trajectory-1.json").is_file(), "the attempt that was cut off is kept"
    cost = run.facts("sleeper")["cost_usd"]
    assert cost == pytest.approx(COST * (1 + run.facts("sleeper")["agent"]["steps"])), "and paid for"


def test_the_command_says_what_came_of_it(run: Run) -> None:
    ran = run_pkb(*make_agent_words(run, "worker"))
    assert ran.returncode == 0, ran.stderr
    assert "Submitted after 3 steps and 2 evaluations" in ran.stdout
    assert "CORRECT  1_allreduce  openai-worker-1" in ran.stdout
    assert "1 of 1 samples are there, 1 with code" in ran.stderr


def test_without_mini_swe_agent_it_says_how_to_install_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name == "pkb.agent.mini_swe" or name.partition(".")[0] == "minisweagent":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "minisweagent", None)
    ran = run_pkb(*make_agent_words(run, "worker"))
    assert ran.returncode == 2
    assert "install it with: pip install -e '.[agent]'" in ran.stderr


def test_a_level_that_breaks_down_gives_way_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the kernel forbids namespaces: only a process of one thread may unshare its user namespace."""
    thread = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    (tmp_path / "sitecustomize.py").write_text(thread)
    package = Path(pkb.__file__).parents[1]
    monkeypatch.setattr("pkb.agent.shell.ONE_THREAD", {"PYTHONPATH": f"{tmp_path}:{package}"})
    with Shell(tmp_path) as shell:
        assert shell.facts["level"] != "namespaces"
        assert "namespaces" in shell.facts["refused"]
        assert shell.run("echo hello", 10)["output"] == "hello\n"
    with pytest.raises(UsageError, match="no sandbox for the agent"):
        Shell(tmp_path, "require")


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_shell_runs_commands_in_its_folder(tmp_path: Path, sandbox: str) -> None:
    with Shell(tmp_path, sandbox) as shell:
        assert shell.run("echo hello > note; cat note; exit 3", 10) == {"code": 3, "output": "hello\n"}
        assert (tmp_path / "note").read_text() == "hello\n"
        assert shell.run("echo before; sleep 100", 0.5) == {"code": None, "output": "before\n"}
        flood = shell.run("yes | head -c 1000000", 10)["output"]
        assert len(flood) < 40000
        assert "bytes left out" in flood
        shell.close()
        with pytest.raises(ShellClosed):
            shell.run("true", 10)


def test_a_shell_has_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "0123456789abcdef")
    with Shell(tmp_path, "off") as shell:
        assert "0123456789abcdef" not in shell.run("env", 10)["output"]


def test_what_commands_leave_running_ends_with_the_shell(tmp_path: Path) -> None:
    seconds = f"1234.{os.getpid()}"
    with Shell(tmp_path) as shell:
        if shell.facts["level"] != "namespaces":
            pytest.skip(f"at the level {shell.facts['level']} nothing holds what has left its group")
        shell.run(f"setsid sleep {seconds} & sleep 1", 10)
        assert _sleeps(seconds)
    wait_until(lambda: not _sleeps(seconds))


def _sleeps(seconds: str) -> bool:
    return any(seconds in (one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"]))
