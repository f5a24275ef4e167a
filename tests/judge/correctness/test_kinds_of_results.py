"""Results in every kind that torch has: read rightly, or refused in words that say what to do."""

import pytest

from pkb.candidate import Candidate
from pkb.judge.correctness.check import has_overlap
from pkb.judge.judge import Judge
from pkb.record import Record
from pkb.settings import ProblemSettings

SOURCE = """
import torch
import torch.distributed as dist


class Own(torch.Tensor):
    pass


class Sneaky(dict):
    def __iter__(self):
        return iter(())


def hide(tensor):
    tensor.__dict__ = Sneaky(detach=tensor.clone)
    return tensor


def note(tensor):
    tensor.note, tensor._dynamo_dynamic_indices = print, {0}
    return tensor


def shadow(tensor):
    tensor.detach = tensor.clone
    return tensor


def hold_each_other(tensor):
    held = [tensor]
    for _ in range(10):
        held = [held] * 100
    return held


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return RESULT
"""


@pytest.mark.parametrize(
    "result",
    [
        "torch._neg_view(-total)",
        "torch.complex(total, total).conj().real.contiguous()",
        "torch.complex(total, -total).conj().imag.contiguous()",
        "total.requires_grad_()",
        "torch.nn.Parameter(total)",
        "note(total)",
        "torch.cat([total.reshape(-1), total.reshape(-1)])[total.numel() :].view(total.shape)",
        "torch.inference_mode()(lambda: total + 0)()",
    ],
)
def test_are_read_rightly(judge: Judge, result: str) -> None:
    record = judge_result(judge, result)
    assert record.correct, record.reason
    assert record.strided_outputs == []


@pytest.mark.parametrize(
    "result",
    [
        "total.T.contiguous().T",
        "torch.complex(total, total).imag",
        "torch.cat([total, total], dim=1)[:, : total.shape[1]]",
        "torch.cat([total, total], dim=1)[:, total.shape[1] :]",
    ],
)
def test_may_have_any_strides(judge: Judge, result: str) -> None:
    record = judge_result(judge, result)
    assert record.correct, record.reason
    assert record.strided_outputs == [0]


@pytest.mark.parametrize(
    ("shape", "strides", "overlaps"),
    [
        ((3, 4), (4, 1), False),
        ((3, 4), (1, 3), False),
        ((3, 4), (8, 2), False),
        ((2, 3), (3, 2), False),
        ((3, 4), (0, 1), True),
        ((3, 4), (1, 1), True),
        ((3, 4), (3, 1), True),
        ((1, 4), (0, 1), False),
        ((0, 4), (0, 0), False),
        ((), (), False),
        ((1 << 11, 1 << 11), (3, 2), True),
    ],
)
def test_elements_that_share_memory_are_found(shape: tuple[int, ...], strides: tuple[int, ...], overlaps: bool) -> None:
    assert has_overlap(shape, strides) is overlaps


@pytest.mark.parametrize(
    ("result", "check", "says"),
    [
        ("total.to_sparse()", "layout", "return a dense one, such as to_dense() makes"),
        ("total.to_sparse_csr()", "layout", "return a dense one"),
        ("total.to_mkldnn()", "layout", "return a dense one"),
        (
            "torch.quantize_per_tensor(total, 0.1, 0, torch.quint8)",
            "type",
            "is a quantised Tensor of torch.quint8; return a plain",
        ),
        ("torch.nested.nested_tensor([total, total])", "type", "is a nested Tensor; return a plain torch.Tensor"),
        ("torch.nested.nested_tensor([total], layout=torch.jagged)", "type", "NestedTensor; return a plain"),
        ("total.to('meta')", "device", "is on meta, expected cpu; leave results on the arguments' device"),
        ("total[:1].expand(total.shape)", "overlap", "elements share memory"),
        ("total.as_strided(total.shape, (1, 1))", "overlap", "elements share memory"),
        ("torch.complex(total, total)", "dtype", "has dtype torch.complex64, expected torch.float32"),
        ("total.sum()", "shape", "has shape [], expected"),
        ("total[:0]", "shape", "expected"),
        ("total.as_subclass(Own)", "type", "is a candidate.Own; return a plain torch.Tensor"),
        ("shadow(total)", "type", "is a Tensor with its own detach; return a plain torch.Tensor"),
        ("hide(total)", "type", "is a Tensor with its own __dict__; return a plain torch.Tensor"),
        ("total.numpy()", "form", "an object of type ndarray where the reference returns a tensor"),
        ("float('nan')", "form", "an object of type float nan where the reference returns a tensor"),
        ("10 ** 4000", "form", "an object of type int where the reference returns a tensor"),
        ("[torch.empty(0)] * 300_000", "form", "an object of type list with 300000 tensors where the reference"),
        ("[[0] * 50] * 50", "form", "an object of type list with 2551 parts where the reference returns a tensor"),
        ("hold_each_other(total)", "form", "tensors or more where the reference returns a tensor"),
        ("iter([total])", "form", "an object of type list_iterator where the reference returns a tensor"),
    ],
)
def test_are_refused_in_words_that_help(judge: Judge, result: str, check: str, says: str) -> None:
    record = judge_result(judge, result)
    assert (str(record.verdict), record.evidence.check) == ("WRONG", check), record.reason
    assert says in record.reason


def judge_result(judge: Judge, result: str) -> Record:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    return judge.judge(setup, Candidate.of(SOURCE.replace("RESULT", result).encode()))
