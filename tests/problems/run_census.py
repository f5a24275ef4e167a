"""Count the work of every reference on all ranks, and write it with the work that its problem declares.

Started by test_costs.py as: run_census.py FOLDER IDS WORLDS; the problems with these ids are drawn several times. Ranks
are forked from one process that has imported torch: in every rank, the imports would take longer than the counting.
"""

import json
import math
import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from pkb.problems import link
from pkb.problems.cost import Link
from pkb.problems.problem import Problem
from pkb.problems.suite import list_problems
from pkb.rank.collective_observer import Collective, Observer, observe_collectives

TRIALS = range(6)
DRAWS = 4
TIMEOUT = timedelta(seconds=120)
"""Ranks that wait for a lost one end by themselves."""
aten = torch.ops.aten

# Operations per element: of the result for pointwise ones, of the first argument for the others.
# An exponential, a root or a comparison is one.
WEIGHTS = {
    aten._log_softmax: 5,
    aten._softmax: 5,
    aten.addcmul: 3,
    aten.addcmul_: 3,
    aten.cumsum: 1,
    aten.linalg_vector_norm: 2,
    aten.log_sigmoid_forward: 3,
    aten.logaddexp: 4,
    aten.logsumexp: 4,
    aten.mse_loss: 3,
    aten.mse_loss_backward: 2,
    aten.sigmoid: 3,
    aten.silu: 4,
    aten.softplus: 3,
    aten.sort: 1,
    aten.topk: 1,
}
# Tagged as pointwise, but they only choose or copy.
MOVES = {aten.clone, aten.masked_fill, aten.where}
COMPLEX_WEIGHTS = {aten.add: 2, aten.sub: 2, aten.mul: 6}
TRILINEAR = 14
"""Seven mixtures of two values, at two operations each."""


def fourier(args: tuple, out: Tensor) -> float:
    """5 n log2 n for n complex values, half of it where one side is real."""
    whole = out if out.is_floating_point() else args[0]
    points = math.prod(whole.shape[d] for d in args[1])
    per_value = 5 if args[0].is_complex() and out.is_complex() else 2.5
    return per_value * whole.numel() * math.log2(points)


SPECIAL: dict[Any, Callable[[tuple, Any], float]] = {
    aten._fft_c2c: fourier,
    aten._fft_c2r: fourier,
    aten._fft_r2c: fourier,
    aten._scaled_dot_product_flash_attention_for_cpu: lambda args, _: sdpa_flop_count(*(t.shape for t in args[:3])),
    # The flop counter takes sparse factors for dense ones.
    aten.bmm: lambda args, out: 2 * (args[0]._nnz() if args[0].is_sparse else args[0].numel()) * out.shape[-1],
    aten.index_add_: lambda args, _: args[3].numel(),
    aten.scatter_add_: lambda args, _: args[3].numel(),
    aten.upsample_trilinear3d: lambda _, out: TRILINEAR * out.numel(),
}


def rounds(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


class Arithmetic(TorchDispatchMode):
    """Adds up floating-point operations: the products that torch's own flop counter knows, and one for every
    element that a pointwise operation makes or a reduction reads."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(rounds(leaf) for leaf in tree_leaves((args, out))):
            self.flops += operations(func, args, kwargs or {}, out)
        return out


def operations(func: Any, args: tuple, kwargs: dict, out: Any) -> float:
    name = func._overloadpacket
    if name in SPECIAL:
        return SPECIAL[name](args, out)
    if name in flop_registry:
        return flop_registry[name](*args, **kwargs, out_val=out)
    if name in MOVES:
        return 0
    if torch.Tag.pointwise in func.tags:
        return pointwise_weight(name, kwargs, out) * out.numel()
    reads = torch.Tag.reduction in func.tags or name in WEIGHTS
    return WEIGHTS.get(name, 1) * args[0].numel() if reads else 0


def pointwise_weight(name: Any, kwargs: dict, out: Tensor) -> int:
    scaled = kwargs.get("alpha", 1) != 1
    return scaled + (COMPLEX_WEIGHTS if out.is_complex() else WEIGHTS).get(name, 1)


class Traffic(Observer):
    """Adds up the bytes that this rank's collectives move by the usual algorithms, and the additions they do."""

    def __init__(self) -> None:
        super().__init__()
        self.link = link.none()
        self.flops = 0.0

    def observe_send(self, collective: Collective, tensor: Tensor) -> Tensor:
        world, is_root = collective.world, collective.rank == collective.root
        if collective.kind == "gather":
            self.link += link.gather(world * tensor.nbytes, world, is_root)
        elif collective.kind in ("send", "batch_isend_irecv"):
            self.link += Link(tensor.nbytes, 0)
        return tensor

    def observe_receive(self, collective: Collective, received: dict[int, Tensor], local: dict[int, Tensor]) -> None:
        if collective.kind in ("broadcast", "scatter"):
            self._from_root(collective, received[collective.root].nbytes)
        elif collective.kind in ("recv", "batch_isend_irecv"):
            self.link += Link(0, sum(block.nbytes for block in received.values()))
        elif collective.kind != "gather":
            others = [rank for rank in received if rank != collective.rank]
            self.link += Link(*(sum(blocks[rank].nbytes for rank in others) for blocks in (local, received)))

    def _from_root(self, collective: Collective, size: int) -> None:
        world, is_root = collective.world, collective.rank == collective.root
        moved = link.broadcast(size, world, is_root)
        self.link += moved if collective.kind == "broadcast" else link.scatter(world * size, world, is_root)

    def observe_reduction(self, collective: Collective, result: Tensor, own: Tensor, op: Any, group: Any) -> None:
        world = collective.world
        match collective.kind:
            case "all_reduce":
                self.link += link.all_reduce(own.nbytes, world)
            case "reduce_scatter_tensor":
                self.link += link.reduce_scatter(own.nbytes, world)
            case "reduce":
                self.link += link.reduce(own.nbytes, world, collective.rank == collective.root)
        self.flops += own.numel() * (world - 1) / world if rounds(own) else 0


@dataclass
class Work:
    flops: float
    egress: float
    ingress: float


@dataclass
class Entry:
    problem: str
    rank: int
    trial: int
    declared: Work
    counted: Work


def count_work(problem: Problem, args: tuple) -> Work:
    traffic, arithmetic = Traffic(), Arithmetic()
    with observe_collectives(traffic), arithmetic:
        problem.solution(*args)
    return Work(arithmetic.flops + traffic.flops, traffic.link.egress, traffic.link.ingress)


def count_entry(problem: Problem, world: int, rank: int, trial: int, draw: int) -> Entry:
    number = DRAWS * trial + draw
    seeds = {"seed": world * number + rank, "shared_seed": 1000 + number}
    case = problem.case("tiny", "float32", world, rank, trial=trial, **seeds)
    cost = problem.cost(case)
    declared = Work(cost.flops, cost.link.egress, cost.link.ingress)
    return Entry(problem.stem, rank, trial, declared, count_work(problem, problem.inputs(case)))


def run_rank(folder: Path, often: set[int], world: int, rank: int) -> None:
    store = f"file://{folder}/store{world}"
    dist.init_process_group("gloo", init_method=store, world_size=world, rank=rank, timeout=TIMEOUT)
    entries = [
        asdict(count_entry(problem, world, rank, trial, draw))
        for problem in list_problems()
        if world in problem.list_worlds()
        for trial in TRIALS
        for draw in range(DRAWS if problem.id in often else 1)
    ]
    (folder / f"{world}-{rank}.json").write_text(json.dumps(entries))
    dist.destroy_process_group()


def run_world(folder: Path, often: set[int], world: int) -> None:
    """Run all ranks, and exit with an error as soon as one of them fails."""
    context = multiprocessing.get_context("fork")
    ranks = [context.Process(target=run_rank, args=(folder, often, world, rank), daemon=True) for rank in range(world)]
    for rank in ranks:
        rank.start()
    while alive := [rank for rank in ranks if rank.exitcode is None]:
        wait([rank.sentinel for rank in alive])
        if any(rank.exitcode for rank in ranks):
            sys.exit(f"a rank of {world} failed")


def warm_up() -> None:
    """Import before the forks what torch imports on the first use."""
    with Arithmetic():
        torch.ones(2) * 2


def main() -> None:
    folder, often = Path(sys.argv[1]), set(map(int, sys.argv[2].split(",")))
    # The ranks share the cores, and a process with threads cannot be forked.
    torch.set_num_threads(1)
    list_problems()
    warm_up()
    for world in map(int, sys.argv[3].split(",")):
        run_world(folder, often, world)


if __name__ == "__main__":
    main()
