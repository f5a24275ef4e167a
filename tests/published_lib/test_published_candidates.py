"""Candidates written for the public ParallelKernelBench find the modules that they import from `utils`."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from helpers.published import write_checkout
from pkb.base.paths import find_package
from pkb.base.python_source import find_argument_free_callers, find_local_names
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import find_suite
from pkb.protocol.extension_files import may_compile
from pkb.record import Record, Verdict
from pkb.screen import Severity, screen
from pkb.settings import JudgementSettings, ProblemSettings, Track

TRITON = """
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl
from utils.triton_utils import get_flat_bid, get_flat_tid, send_signal, sync_threads, wait_signal
from utils.triton_utils import blockwise_barrier

_kept = {}


@triton.jit
def one_shot(pads, buffers, out, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    blockwise_barrier(pads, None, RANK, WORLD, sem="acq_rel")
    sync_threads()
    place = get_flat_bid() * BLOCK + tl.arange(0, BLOCK)
    table = buffers.to(tl.pointer_type(tl.uint64))
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for rank in range(WORLD):
        theirs = tl.load(table + rank).to(tl.pointer_type(tl.float32))
        total += tl.load(theirs + place, mask=place < count, other=0.0)
    tl.store(out + place, total, mask=place < count)
    sync_threads()
    # The same by hand, with another block's words.
    ranks = tl.arange(0, WORLD)
    block = get_flat_bid() + 32
    all_pads = tl.load(pads.to(tl.pointer_type(tl.uint64)) + ranks).to(tl.pointer_type(tl.uint32))
    own_pad = tl.load(pads.to(tl.pointer_type(tl.uint64)) + RANK).to(tl.pointer_type(tl.uint32))
    if get_flat_tid() < WORLD:
        send_signal(all_pads + block * WORLD + RANK, "relaxed")
        wait_signal(own_pad + block * WORLD + ranks, "relaxed")


def solution(tensor):
    count = tensor.numel()
    if count not in _kept:
        buffer = symm_mem.empty(count, dtype=tensor.dtype, device=tensor.device)
        _kept[count] = buffer, symm_mem.rendezvous(buffer, dist.group.WORLD)
    buffer, handle = _kept[count]
    buffer.copy_(tensor.flatten())
    out = torch.empty_like(tensor)
    pads, buffers = handle.signal_pad_ptrs_dev, handle.buffer_ptrs_dev
    one_shot[(triton.cdiv(count, 512),)](pads, buffers, out, count, handle.rank, handle.world_size, BLOCK=512)
    return out
"""
KITTENS = """
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from utils.parallelkittens_runtime import create_parallel_tensor, get_or_create_barrier, get_or_create_parallel_tensor


class Extension:
    made = 0

    class TKParallelTensor:
        def __init__(self, shape, dtype, local_rank, local_world_size, multicast):
            assert (local_rank, local_world_size) == (dist.get_rank(), dist.get_world_size())
            assert type(shape) is list and multicast is True
            Extension.made += 1
            self.data_ = symm_mem.empty(shape, dtype=dtype)
            self.handle = symm_mem.rendezvous(self.data_, dist.group.WORLD)


def solution(tensor):
    shared = get_or_create_parallel_tensor(Extension, tensor.shape, tensor.dtype)
    flags = get_or_create_barrier(Extension, num_devices=dist.get_world_size())
    assert flags.data_.shape == (64,) and flags.data_.dtype == torch.int32 and flags.data_.eq(0).all()
    assert get_or_create_parallel_tensor(Extension, tuple(tensor.shape), tensor.dtype, multicast=True) is shared
    shared.data_.copy_(tensor)
    shared.handle.barrier()
    parts = [shared.handle.get_buffer(rank, tensor.shape, tensor.dtype) for rank in range(dist.get_world_size())]
    total = torch.stack(parts).sum(0)
    shared.handle.barrier(channel=1)
    return total
"""
CUDA = """
from utils.cuda_helpers import compile_cuda_extension

SOURCE = r'''
#include <torch/extension.h>
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
'''
_extension = None


def _get_extension():
    global _extension
    if _extension is None:
        _extension = compile_cuda_extension("twice_ext", SOURCE, extra_cuda_cflags=["--use_fast_math"])
    return _extension


def solution(tensor):
    return _get_extension().run(tensor)
"""
HELPED = """
import torch
import torch.distributed as dist
from utils.shapes import count_rows
from utils.triton_utils import get_flat_bid


def solution(tensor):
    assert callable(get_flat_bid) and count_rows([1, 2]) == 3
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""


def judge_sum(judge: Judge, source: str, track: Track = Track.ANY) -> Record:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=2))
    return judge.judge(setup, Candidate.of(source.encode()), JudgementSettings(track=track))


@pytest.mark.parametrize("track", [Track.ANY, Track.SCRATCH])
def test_a_triton_candidate_meets_its_peers(judge: Judge, track: Track) -> None:
    record = judge_sum(judge, TRITON, track)
    assert record.correct, record.reason
    assert record.candidate.backend == "triton"


def test_parallel_tensors_are_made_once_and_by_the_candidates_own_class(judge: Judge) -> None:
    record = judge_sum(judge, KITTENS)
    assert record.correct, record.reason


def test_a_cuda_candidate_is_built_ahead_and_counts_as_a_kernel() -> None:
    candidate = Candidate.of(CUDA.encode())
    assert candidate.backend.name == "cuda"
    assert may_compile(candidate.source)
    names = find_local_names(candidate.source, "utils.cuda_helpers")
    assert find_argument_free_callers(candidate.source, names) == ["_get_extension"]
    findings = screen(CUDA, candidate.backend, Track.SCRATCH)
    assert [finding for finding in findings if finding.severity is Severity.REJECT] == []


@pytest.mark.skipif(torch.version.cuda is not None, reason="torch is built with CUDA here")
def test_without_cuda_a_candidate_is_told_what_is_missing(judge: Judge) -> None:
    record = judge_sum(judge, CUDA)
    assert (record.verdict, record.evidence.check) == (Verdict.ENVIRONMENT, "backend")
    code = f"import sys; sys.path.insert(0, {str(find_package() / 'published_lib')!r})\n{CUDA}\n_get_extension()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "'twice_ext' cannot be compiled: torch" in ran.stderr
    assert "is built without CUDA; install a CUDA build of it" in ran.stderr


def test_the_judge_itself_finds_no_such_module(judge: Judge) -> None:
    assert judge_sum(judge, KITTENS).correct
    found = importlib.util.find_spec("utils")
    assert found is None or "published_lib" not in str(found.origin)


def test_a_checkouts_candidates_find_ours_and_what_its_references_import(judge: Judge, tmp_path: Path) -> None:
    problem = find_suite(str(write_checkout(tmp_path))).load(1)
    setup = judge.pose(problem, ProblemSettings(nproc=2, trials=1))
    record = judge.judge(setup, Candidate.of(HELPED.encode()))
    assert record.correct, record.reason
    not_there = HELPED.replace("from utils.shapes", "from utils.run_utils")
    assert "No module named 'utils.run_utils'" in judge.judge(setup, Candidate.of(not_there.encode())).reason
