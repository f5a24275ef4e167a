"""A small checkout in the layout of the public ParallelKernelBench: references, their inputs, and what both import."""

from pathlib import Path

SUM = '''"""Sum a tensor over all ranks."""

import torch
import torch.distributed as dist


@torch.no_grad()
def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total)
    return total
'''
SCALED = '''"""Gather scaled rows inside a group, in place of the published kind that helpers of other files do."""

import torch
import torch.distributed as dist

from utils import shapes
from reference.common.scaling import scale_rows


def solution(x: torch.Tensor, factors: torch.Tensor, counts: list, group=None) -> torch.Tensor:
    from reference.common.late import gather_rows

    x.mul_(1.0)
    return gather_rows(scale_rows(x, factors), shapes.count_rows(counts), group)
'''
UNEVEN = """import torch.distributed as dist


def solution(x):
    y = x * 2
    dist.all_reduce(y)
    return y
"""
INPUTS = """import torch
import torch.distributed as dist

from utils.shapes import split_ranks


def _seed(problem_id, rank, trial=0):
    torch.manual_seed(11 + 100 * problem_id + rank + 1000 * trial)


def create_input_tensor(rank, world_size, problem_id, base_shape, dtype, trial=0, device=None):
    rows, columns = base_shape
    if problem_id == 1:
        return (torch.full(base_shape, float(rank + 1), dtype=dtype, device=device),)
    if problem_id == 2:
        group = dist.new_group(ranks=list(range(dist.get_world_size())))
        assert dist.get_rank(group) == rank
        _seed(problem_id, 0, trial)
        factors = torch.randn((rows,), dtype=dtype, device=device)
        _seed(problem_id, rank, trial)
        x = torch.randn((rows, columns), dtype=dtype, device=device)
        return x, factors, [rows] * world_size, group
    assert world_size % 2 == 0, "problem 3 needs an even number of ranks"
    return (torch.randn(split_ranks(rows, world_size), dtype=dtype, device=device),)
"""
FILES = {
    "reference/1_allreduce.py": SUM,
    "reference/2_scaled_gather.py": SCALED,
    "reference/3_doubled_sum.py": UNEVEN,
    "reference/common/scaling.py": "def scale_rows(x, factors):\n    return x * factors[:, None]\n",
    "reference/common/late.py": (
        "import torch\nimport torch.distributed as dist\n\n\n"
        "def gather_rows(x, rows, group):\n"
        "    parts = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]\n"
        "    dist.all_gather(parts, x, group=group)\n"
        "    return torch.cat(parts)[:rows]\n"
    ),
    "utils/shapes.py": (
        "def split_ranks(rows, world):\n    return (rows // world, 3)\n\n\n"
        "def count_rows(counts):\n    return sum(counts)\n"
    ),
    "utils/input_output_tensors.py": INPUTS,
    # Candidates, and programs, that the references do not import.
    "solutions_triton/1_allreduce_triton.py": "raise RuntimeError('nobody runs this')\n",
    "utils/run_utils.py": "raise RuntimeError('nobody runs this')\n",
}


def write_checkout(folder: Path) -> Path:
    """Write the files of a small checkout to a folder, and return it."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
