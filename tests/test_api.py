"""The Python API: as the README shows it, from threads, tasks and other processes, and with all kinds of candidates."""

import asyncio
import inspect
import multiprocessing
import os
import re
import runpy
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import pytest

import pkb
from pkb.judge.turns import Turns

ROOT = Path(__file__).parents[1]
RIGHT = """
import torch.distributed as dist

def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""
HANG = """
import time

def solution(tensor):
    time.sleep(1000)
"""


def judge(candidate: str | os.PathLike[str], **more: object) -> pkb.Record:
    return pkb.evaluate("allreduce", candidate, nproc=2, trials=1, platform="cpu", **more)  # type: ignore[arg-type]


def judge_async(candidate: str) -> object:
    return pkb.evaluate_async("allreduce", candidate, nproc=2, trials=1, platform="cpu")


def judge_in_child(_: int) -> str:
    return judge(RIGHT).verdict.value


def test_the_example_in_the_readme_runs(tmp_path: Path, capsys: object) -> None:
    example = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    assert len(example.strip().splitlines()) <= 14
    script = tmp_path / "example.py"
    script.write_text(example)
    names = runpy.run_path(str(script))
    assert isinstance(names["record"], pkb.Record)
    assert names["record"].verdict == pkb.Verdict.CORRECT


def test_the_guide_judges_a_folder_of_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    (tmp_path / "kernels").mkdir()
    for name, source in (("right", RIGHT), ("wrong", "def solution(tensor): return tensor * 2")):
        (tmp_path / "kernels" / f"{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "example.py").write_text(example)
    runpy.run_path("example.py")
    records = pkb.Run("runs/mine").list_records()
    assert [(one.candidate.name, one.verdict.value) for one in records] == [("right", "CORRECT"), ("wrong", "WRONG")]


def test_the_package_names_its_own() -> None:
    assert {"evaluate", "list_problems", "load_problem", "Record", "Problem", "Judge"} <= set(pkb.__all__)
    assert all(getattr(pkb, name) for name in pkb.__all__)
    assert dir(pkb) == sorted([*pkb.__all__, "__version__"])


def test_the_package_is_typed() -> None:
    """`make types` checks the types themselves; without this file, no type checker of a user reads them."""
    assert (resources.files("pkb") / "py.typed").is_file()
    assert inspect.iscoroutinefunction(pkb.evaluate_async)
    assert inspect.signature(pkb.evaluate_async) == inspect.signature(pkb.evaluate)


def test_a_path_is_a_path_and_a_text_is_a_text(tmp_path: Path) -> None:
    file = tmp_path / "my kernel.py"
    file.write_text(RIGHT)
    for given in (file, str(file), RIGHT):
        assert judge(given).verdict is pkb.Verdict.CORRECT
    assert judge("def solution(tensor): return tensor").verdict is pkb.Verdict.WRONG
    # Also where the last line looks like the name of a file.
    assert judge(RIGHT + "# my_kernel.py").verdict is pkb.Verdict.CORRECT
    assert judge("").verdict is not pkb.Verdict.CORRECT
    for missing in (tmp_path / "missing", str(tmp_path / "missing.py")):
        with pytest.raises(pkb.UsageError, match="cannot read the candidate"):
            judge(missing)


def test_threads_share_one_judge() -> None:
    with ThreadPoolExecutor(4) as threads:
        records = [*threads.map(judge, [RIGHT, "def solution(tensor): return tensor"] * 4)]
    assert [record.verdict.value for record in records] == ["CORRECT", "WRONG"] * 4


def test_tasks_wait_without_blocking_and_may_be_cancelled(tmp_path: Path) -> None:
    async def ask() -> list[pkb.Record]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.005)

        ticking = asyncio.create_task(tick())
        records = await asyncio.gather(*(judge_async(RIGHT) for _ in range(2)))
        assert ticks > 10
        hanging = asyncio.create_task(
            pkb.evaluate_async("allreduce", HANG, nproc=2, trials=1, platform="cpu", out=tmp_path / "hang")
        )
        waiting = asyncio.create_task(judge_async(RIGHT))
        await asyncio.sleep(1.0)
        hanging.cancel()
        started = time.monotonic()
        records.append(await waiting)
        assert time.monotonic() - started < 50, "the judgement was ended, it did not reach its deadline of 60 s"
        with pytest.raises(asyncio.CancelledError):
            await hanging
        ticking.cancel()
        return [*records, await asyncio.to_thread(judge, RIGHT)]

    assert [record.verdict.value for record in asyncio.run(ask())] == ["CORRECT"] * 4
    assert not (tmp_path / "hang" / "record.json").exists()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_have_judges_of_their_own(method: str) -> None:
    assert judge(RIGHT).correct
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(judge_in_child, range(2)) == ["CORRECT"] * 2
    assert judge(RIGHT).correct


def test_a_fork_in_the_middle_of_a_judgement_harms_neither_side() -> None:
    with ThreadPoolExecutor(1) as thread:
        running = [thread.submit(judge, RIGHT) for _ in range(3)]
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.map(judge_in_child, [0]) == ["CORRECT"]
        assert [one.result().verdict.value for one in running] == ["CORRECT"] * 3


@pytest.fixture
def interrupt_after() -> Iterator[Callable[[float], None]]:
    timers: list[threading.Timer] = []

    def begin(seconds: float) -> None:
        timers.append(threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield begin
    for timer in timers:
        timer.join()


@pytest.mark.parametrize("seconds", [0.2, 1.0])
def test_ctrl_c_ends_one_judgement_and_no_other(interrupt_after: Callable[[float], None], seconds: float) -> None:
    assert judge(RIGHT).correct
    interrupt_after(seconds)
    with pytest.raises(KeyboardInterrupt):
        judge(HANG)
    assert judge(RIGHT).correct


def test_ctrl_c_while_waiting_leaves_the_queue(interrupt_after: Callable[[float], None]) -> None:
    turns, order = Turns(), []
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with turns.take():
            holding.set()
            done.wait(60)

    def join(name: str, ahead: bool = False) -> None:
        with turns.take(ahead=ahead), turns.take():
            order.append(name)

    holder = threading.Thread(target=hold)
    holder.start()
    holding.wait(60)
    waiting = [threading.Thread(target=join, args=one) for one in (("first",), ("second",), ("urgent", True))]
    for length, thread in enumerate(waiting, start=2):
        thread.start()
        while len(turns._queue) < length:
            time.sleep(0.001)
    interrupt_after(0.2)
    with pytest.raises(KeyboardInterrupt):
        join("interrupted")
    done.set()
    for thread in (holder, *waiting):
        thread.join()
    assert order == ["urgent", "first", "second"]
    assert not turns.is_mine
