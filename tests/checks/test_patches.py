"""The check `patched` notices what a candidate replaces in its rank: by assignment, in place, and by hiding."""

import builtins
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pkb.checks.patches import PatchCheck
from pkb.protocol import digest, messages
from pkb.rank import call, rank
from pkb.rank.call import Call

SET = pytest.MonkeyPatch


def replace_code(patch: SET) -> None:
    patch.setattr(Call.begin, "__code__", (lambda self: None).__code__)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda patch: patch.setattr(rank, "cut_pieces", print), "pkb.rank.rank.cut_pieces"),
        (lambda patch: patch.setattr(Call, "begin", print), "pkb.rank.call.Call.begin"),
        (replace_code, "pkb.rank.call.Call.begin.__code__"),
        (lambda patch: patch.setattr(digest.digest_all, "__defaults__", (1,)), "digest_all.__defaults__"),
        (lambda patch: patch.setitem(rank.HANDLERS, messages.TimeBlock, print), "pkb.rank.rank.HANDLERS["),
        (lambda patch: patch.setitem(sys.modules, "pkb.rank.call", rank), "sys.modules[pkb.rank.call]"),
        (lambda patch: patch.setattr(call, "len", lambda items: 0, raising=False), "pkb.rank.call.len"),
        (lambda patch: patch.setattr(Call, "__setattr__", lambda *_: None), "pkb.rank.call.Call.__setattr__"),
        (lambda patch: patch.setattr(builtins, "id", lambda it: 0), "builtins.id"),
        (lambda patch: patch.setattr(time, "perf_counter_ns", lambda: 0), "time.perf_counter_ns"),
        (lambda patch: patch.setattr(torch.Tensor, "data_ptr", lambda it: 0), "Tensor.data_ptr"),
    ],
)
def test_replaced_functions_are_named(change: Callable[[SET], Any], name: str) -> None:
    check = PatchCheck(None)  # type: ignore[arg-type]
    assert check.report() == []
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        found = check.report()
    assert found
    assert any(name in one for one in found)
    assert check.report() == []


def test_the_check_takes_milliseconds() -> None:
    check = PatchCheck(None)  # type: ignore[arg-type]
    spent = []
    for _ in range(5):
        start = time.process_time()
        check.report()
        spent.append(time.process_time() - start)
    assert min(spent) < 0.05


def test_what_is_imported_later_and_a_candidates_own_names_are_no_patches() -> None:
    check = PatchCheck(None)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pkb.rank.later", rank, raising=False)
        patch.setitem(sys.modules, "pkb_model_later", rank)
        patch.setattr(torch, "a_name_of_its_own", print, raising=False)
        assert check.report() == []
