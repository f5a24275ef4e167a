"""The self-test finds what is wrong with the judge on a machine, says what it did not run, and names nobody."""

import getpass
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest

from helpers.commands import check_mistake, run_pkb
from helpers.processes import start_process
from pkb.base.schema import parse
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.platforms import load_platforms
from pkb.record import SandboxFacts
from pkb.settings import JudgementSettings
from pkb.tools.redteam import Attempt
from pkb.tools.selftest.anonymous import anonymize
from pkb.tools.selftest.bench import Bench, find_attempt, find_shipped_kernel
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.checks import CHECKS, cheats, clocks, honest, timed_cheats, timing
from pkb.tools.selftest.checks.cheats import stage_attempt
from pkb.tools.selftest.checks.leftovers import LEFTOVERS
from pkb.tools.selftest.checks.machine import MACHINE
from pkb.tools.selftest.checks.references import judge_reference
from pkb.tools.selftest.checks.sandbox import SANDBOX, weigh_try
from pkb.tools.selftest.outcome import CheckOutcome, SelftestRecord, Status
from pkb.tools.selftest.runner import Selftest

SPIN = b"def solution(tensor):\n    while True: pass\n"
ATTEMPT = '"""row: 31\ntries: nothing\nexpect: WRONG values\n"""\n' + "\n".join(
    [
        "import torch.distributed as dist",
        "def solution(t):",
        "    t = t.clone()",
        "    dist.all_reduce(t)",
        "    return t",
    ]
)


class _Made(SelftestCheck):
    """A check of these steps."""

    name, shows, advice = "made", "Nothing.", "mend it"

    def __init__(self, *steps: Step):
        self.steps = steps

    def plan(self, bench: Bench) -> Sequence[Step]:
        return self.steps


@pytest.fixture
def bench(judge: Judge) -> Bench:
    return Bench(judge, 2)


def judge_spin(bench: Bench) -> StepResult:
    record = bench.judge_candidate(bench.pose("1_allreduce"), Candidate.of(SPIN), JudgementSettings())
    return StepResult(Status.FAILED, record.reason)


def raise_error(bench: Bench) -> StepResult:
    raise RuntimeError("out of luck")


def run_checks(*checks: SelftestCheck, minutes: float = 2.0) -> dict[str, CheckOutcome]:
    record = Selftest("cpu", 2, minutes, checks).run()
    assert parse(SelftestRecord, json.loads(record.to_json())) == record
    return {check.name: check for check in record.checks}


def test_a_sound_machine_passes_and_nothing_is_left() -> None:
    one = Step("1", partial(judge_reference, "1_allreduce", "float32"))
    found = run_checks(MACHINE, SANDBOX, _Made(one), LEFTOVERS)
    assert (found["made"].status, found["leftovers"].status) == (Status.OK, Status.OK), found
    sandbox = found["sandbox"]
    if "namespaces" in sandbox.text:
        assert sandbox.status is Status.OK
        assert "confines network" in sandbox.text
        assert sandbox.text.endswith("a candidate that tried reached nothing")


def test_a_candidate_that_tries_reaches_what_is_open() -> None:
    with Judge("cpu", sandbox="off") as judge:
        bench = Bench(judge, 2)
        (tries,) = [step.take(bench) for step in SANDBOX.plan(bench) if step.round is Round.FIRST]
        record = bench.judge_candidate(bench.pose("1_allreduce"), Candidate.of(b"1 / 0"), JudgementSettings())
    assert tries.status is Status.WARNING
    assert tries.text == "reached what is open: network, files, shared_memory, processes"
    assert weigh_try(record, SandboxFacts()).status is Status.FAILED


def test_a_place_that_is_said_to_be_closed_and_is_reached_is_a_failure(bench: Bench) -> None:
    source = b"def solution(tensor):\n    raise RuntimeError('reached: network files')\n"
    record = bench.judge_candidate(bench.pose("1_allreduce"), Candidate.of(source), JudgementSettings())
    found = weigh_try(record, SandboxFacts("namespaces", network="closed by a namespace", files="open"))
    assert (found.status, found.text) == (Status.FAILED, "reached what is said to be closed: network")


def test_what_fails_is_told_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "31_honest.py"
    path.write_text(ATTEMPT)
    missed = Step("31", partial(stage_attempt, Attempt.read(path), True))
    found = run_checks(_Made(missed, Step("error", raise_error)))["made"]
    assert (found.status, found.advice) == (Status.FAILED, "mend it")
    assert found.text.startswith("31: CORRECT in place of WRONG values")
    assert "error: the judge raised RuntimeError: out of luck" in found.text


def test_what_does_not_fit_into_the_time_is_listed_and_no_failure() -> None:
    first = Step("1", partial(judge_reference, "1_allreduce", "float32"), Round.FIRST)
    found = run_checks(_Made(first, Step("spins", judge_spin), Step("later", judge_spin)), LEFTOVERS, minutes=0.3)
    assert [step.status for step in found["made"].steps] == [Status.OK, Status.NOT_RUN, Status.NOT_RUN]
    assert found["made"].text == "1 fine; not run: spins, later"
    assert found["made"].steps[1].text == "the time was up (--minutes)"
    assert found["leftovers"].status is Status.OK


def test_nothing_that_was_run_is_no_success() -> None:
    record = Selftest("cpu", 2, 0.001, [_Made(Step("1", judge_spin))]).run()
    assert record.status is Status.FAILED
    assert record.checks[0].status is Status.NOT_RUN


def test_a_broken_environment_is_a_row_and_an_exit_code(tmp_path: Path) -> None:
    lacking = [one for one in load_platforms().values() if one.find_missing()]
    if not lacking:
        pytest.skip("this machine can use every platform")
    ran = run_pkb("selftest", "--platform", lacking[0].name, "--out", tmp_path / "record.json")
    assert ran.returncode == 1
    first, *_ = ran.stdout.splitlines()
    assert first.startswith(f"FAILED   machine         platform: platform {lacking[0].name} cannot be used here")
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert ran.stdout.count("not run ") == len(CHECKS) - 1
    record = json.loads((tmp_path / "record.json").read_text())
    assert (record["selftest"], record["status"], record["platform"]) == (1, "FAILED", lacking[0].name)


def test_a_mistake_is_no_finding() -> None:
    check_mistake(["selftest", "--platform", "tpu"], "unknown platform 'tpu'")


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("/home/ada/kernels/a.py:12 failed", "<path>:12 failed"),
        ("at ~/x/y, ../up and '/root'", "at <path>, <path> and '<path>'"),
        ("17.5 GiB free in /dev/shm", "17.5 GiB free in /dev/shm"),
        ("1/2 and and/or, 450 GB/s, a / b", "1/2 and and/or, 450 GB/s, a / b"),
        ("GPU 0: NVIDIA H100 (UUID: GPU-5e3f1c2a-0b1c-4d2e-8f3a-1234567890ab)", "GPU 0: NVIDIA H100 (UUID: <uuid>)"),
        ("connect to [10.1.2.3]:29500, driver 580.159.03", "connect to [<address>]:29500, driver 580.159.03"),
    ],
)
def test_texts_that_are_shared_name_no_place(text: str, shared: str) -> None:
    assert anonymize({"key": [text]}) == {"key": [shared]}


def test_texts_that_are_shared_name_nobody() -> None:
    names = [name for name in (getpass.getuser(), socket.gethostname()) if len(name) > 2 and name != "root"]
    for name in names:
        assert not re.search(rf"\b{re.escape(name)}\b", anonymize(f"at {name}: {name.upper()} x{name}x"), re.IGNORECASE)


def test_all_that_the_checks_name_is_shipped() -> None:
    for name in (*cheats._ATTEMPTS, *timed_cheats._ATTEMPTS, *(f"honest/{name}" for name in honest._EXAMPLES)):
        assert Attempt.read(find_attempt(f"{name}.py"))
    for name in honest._KERNELS:
        assert find_shipped_kernel(name)
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert CHECKS[-1] is LEFTOVERS


@pytest.mark.clock
def test_identical_code_and_three_times_the_work_are_timed(bench: Bench) -> None:
    same, repeated = [step for step in timing.TIMING.plan(bench) if step.round is Round.FIRST]
    told = [same.take(bench), repeated.take(bench)]
    assert [len(one.facts["timing"]["block_us"]) for one in told] == [2, 2], told
    assert told[1].facts["timing"]["ratio"] < 2 / 3
    assert told[1].status is not Status.FAILED
    (spread,) = [step.take(bench) for step in clocks.CLOCKS.plan(bench)]
    assert "identical blocks differ by" in spread.text


def _wait_for(process: "subprocess.Popen[str]", word: str) -> list[psutil.Process]:
    assert process.stderr
    for line in process.stderr:
        if word in line:
            return psutil.Process(process.pid).children(recursive=True)
    raise AssertionError(f"the self-test ended before {word}")


def test_ctrl_c_leaves_a_table_in_part_and_no_process() -> None:
    command = [sys.executable, "-m", "pkb", "selftest", "--platform", "cpu", "--nproc", "2"]
    with start_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        family = _wait_for(process, "references: 1_allreduce")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        _, alive = psutil.wait_procs(family, timeout=10)
    assert process.returncode == 130, errors
    assert not alive
    assert "Traceback" not in errors
    assert "ok       references" in output
    assert re.search(r"not run  all references +interrupted", output)
    assert "interrupted on cpu at up to 2 ranks" in output
