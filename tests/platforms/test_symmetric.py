"""The symmetric-memory stand-in, used by real ranks through torch's own import path."""

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.record import Verdict
from pkb.settings import ProblemSettings

HEAD = """
import ctypes
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

def check(handle, buffer, tensor):
{body}

def solution(tensor):
    buffer = symm_mem.empty(64, dtype=torch.int32, device=tensor.device)
    handle = symm_mem.rendezvous(buffer, dist.group.WORLD)
    check(handle, buffer, tensor)
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""

USES = {
    "fields": """
        assert (handle.rank, handle.world_size) == (dist.get_rank(), dist.get_world_size())
        assert handle.multicast_ptr == 0 and handle.offset == 0
        assert handle.buffer_size == 256 and handle.signal_pad_size >= 1024
        assert len(handle.buffer_ptrs) == len(handle.signal_pad_ptrs) == handle.world_size
        assert handle.buffer_ptrs[handle.rank] == buffer.data_ptr()
        table = (ctypes.c_int64 * handle.world_size).from_address(handle.buffer_ptrs_dev)
        assert list(table) == handle.buffer_ptrs
        pads = (ctypes.c_int64 * handle.world_size).from_address(handle.signal_pad_ptrs_dev)
        assert list(pads) == handle.signal_pad_ptrs
        assert handle.get_signal_pad(handle.rank).sum() == 0
        assert symm_mem.is_symm_mem_tensor(buffer) and not symm_mem.is_symm_mem_tensor(tensor)
    """,
    "peers_see_what_was_written": """
        buffer.fill_(100 + handle.rank)
        handle.barrier()
        for peer in range(handle.world_size):
            assert (handle.get_buffer(peer, (8, 8), torch.int32) == 100 + peer).all()
            assert (handle.get_remote_tensor(peer, (64,), torch.int32) == 100 + peer).all()
            assert handle.get_buffer(peer, (4,), torch.int32, storage_offset=60).shape == (4,)
        handle.barrier(channel=3)
    """,
    "signals_order_writes": """
        right, left = (handle.rank + 1) % handle.world_size, (handle.rank - 1) % handle.world_size
        for turn in range(20):
            handle.get_buffer(right, (64,), torch.int32).fill_(turn)
            handle.put_signal(right, channel=turn % 3)
            handle.wait_signal(left, channel=turn % 3)
            assert (buffer == turn).all()
            handle.barrier()
    """,
    "second_rendezvous_is_the_same": """
        assert symm_mem.rendezvous(buffer, dist.group.WORLD) is handle
        assert symm_mem.rendezvous(buffer, dist.group.WORLD.group_name) is handle
        assert symm_mem.rendezvous(buffer[8:], dist.group.WORLD) is handle
    """,
    "workspace": """
        work = symm_mem.get_symm_mem_workspace(dist.group.WORLD.group_name, min_size=4096)
        assert work.buffer_size >= 4096 and work.world_size == handle.world_size
    """,
    "subgroups": """
        own, _ = dist.new_subgroups(2)
        half = symm_mem.rendezvous(symm_mem.empty(4, device=tensor.device), own)
        assert (half.world_size, half.rank) == (2, dist.get_rank() % 2)
        half.barrier()
    """,
}


@pytest.mark.parametrize("name", USES)
def test_stand_in(judge: Judge, name: str) -> None:
    source = HEAD.format(body="\n".join(line[4:] for line in USES[name].splitlines()))
    record = judge.judge(judge.pose("allreduce", ProblemSettings(nproc=4, trials=2)), Candidate.of(source.encode()))
    assert record.verdict is Verdict.CORRECT, (record.reason, record.evidence)


@pytest.mark.parametrize(
    ("use", "says"),
    [
        ("if handle.rank != 0: handle.barrier(timeout_ms=200)", "timed out after 200 ms"),
        ("handle.wait_signal((handle.rank + 1) % 4, timeout_ms=200)", "timed out after 200 ms"),
        ("handle.get_buffer(0, (65,), torch.int32)", "the symmetric allocation has 256"),
        ("symm_mem.rendezvous(tensor, dist.group.WORLD)", "needs a tensor from symm_mem.empty()"),
        ("symm_mem.empty(4, device='cuda')", "take the device from the arguments"),
        (
            "symm_mem.rendezvous(symm_mem.empty(4 + handle.rank), dist.group.WORLD)",
            "must have one size on all ranks, not 16, 20, 24, 28 bytes",
        ),
    ],
)
def test_misuse_is_explained(judge: Judge, use: str, says: str) -> None:
    source = HEAD.format(body=f"    {use}")
    record = judge.judge(judge.pose("allreduce", ProblemSettings(nproc=4, trials=1)), Candidate.of(source.encode()))
    assert record.verdict is Verdict.CRASH
    assert says in record.reason
