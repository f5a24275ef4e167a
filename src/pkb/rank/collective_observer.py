"""torch.distributed with an observer in the middle: it sees what each collective sends and receives, and may change it.

`pkb lint` plants faults this way, and the tests count what references send.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass
class Collective:
    """One call of a collective, seen from one rank of its group."""

    kind: str
    index: int
    """How many collectives this call of the solution made before."""
    rank: int
    world: int
    root: int | None = None
    """For rooted ones, the group rank that holds the data or wants it."""


class Observer:
    """Changes nothing; subclasses do."""

    def __init__(self) -> None:
        self.calls = 0

    def new_call(self) -> None:
        """The solution is about to be called."""
        self.calls += 1

    def outgoing(self, collective: Collective, tensor: Tensor) -> Tensor:
        """What is sent in place of `tensor`."""
        return tensor

    def incoming(self, collective: Collective, received: dict[int, Tensor], local: dict[int, Tensor]) -> None:
        """Data has arrived, by source rank; `local` is what this rank has of its own in the same places."""

    def reduced(self, collective: Collective, result: Tensor, own: Tensor, op: Any, group: Any) -> None:
        """A reduction has ended; `own` is what this rank put into it."""


class _Done:
    """Stands for a work handle: everything is synchronous here."""

    def wait(self, *_: Any) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Route the collectives of torch.distributed through `observer`."""
    wrappers = _Wrappers(observer)
    names = [name for name in vars(_Wrappers) if not name.startswith("_")]
    try:
        for name in names:
            setattr(dist, name, getattr(wrappers, name))
        yield
    finally:
        for name in names:
            setattr(dist, name, ORIGINALS[name])


class _Wrappers:
    """Each takes the arguments of its namesake in torch.distributed."""

    def __init__(self, observer: Observer):
        self._observer = observer
        self._index = 0
        self._seen = observer.calls

    def _collective(self, kind: str, group: Any, root: int | None = None) -> Collective:
        """`root` is a rank of the group."""
        if self._seen != self._observer.calls:
            self._seen, self._index = self._observer.calls, 0
        self._index += 1
        return Collective(kind, self._index - 1, dist.get_rank(group), dist.get_world_size(group), root)

    def all_reduce(self, tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
        return self._in_place_reduction("all_reduce", tensor, op, group, async_op)

    def reduce(
        self,
        tensor: Tensor,
        dst: int | None = None,
        op: Any = dist.ReduceOp.SUM,
        group: Any = None,
        async_op: bool = False,
        group_dst: int | None = None,
    ) -> Any:
        return self._in_place_reduction("reduce", tensor, op, group, async_op, _group_rank(dst, group_dst, group))

    def _in_place_reduction(
        self, kind: str, tensor: Tensor, op: Any, group: Any, async_op: bool, root: int | None = None
    ) -> Any:
        collective = self._collective(kind, group, root)
        own = tensor.clone()
        tensor.copy_(self._observer.outgoing(collective, own))
        place = {} if root is None else {"group_dst": root}
        ORIGINALS[kind](tensor, op=op, group=group, **place)
        self._observer.reduced(collective, tensor, own, op, group)
        return _Done() if async_op else None

    def reduce_scatter_tensor(
        self, output: Tensor, input: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        collective = self._collective("reduce_scatter_tensor", group)
        ORIGINALS["reduce_scatter_tensor"](output, self._observer.outgoing(collective, input), op=op, group=group)
        self._observer.reduced(collective, output, input, op, group)
        return _Done() if async_op else None

    def all_gather_into_tensor(self, output: Tensor, input: Tensor, group: Any = None, async_op: bool = False) -> Any:
        blocks = output.view(dist.get_world_size(group), *input.shape).unbind()
        return self._all_gather(
            "all_gather_into_tensor",
            blocks,
            input,
            group,
            async_op,
            lambda sent: ORIGINALS["all_gather_into_tensor"](output, sent, group=group),
        )

    def all_gather(self, tensors: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
        run = lambda sent: ORIGINALS["all_gather"](tensors, sent, group=group)  # noqa: E731
        return self._all_gather("all_gather", tensors, tensor, group, async_op, run)

    def _all_gather(
        self, kind: str, blocks: Sequence[Tensor], own: Tensor, group: Any, async_op: bool, run: Callable[[Tensor], Any]
    ) -> Any:
        collective = self._collective(kind, group)
        local = own.clone()
        run(self._observer.outgoing(collective, own))
        sources = range(collective.world)
        self._observer.incoming(collective, dict(zip(sources, blocks, strict=True)), dict.fromkeys(sources, local))
        return _Done() if async_op else None

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: list[int] | None = None,
        input_split_sizes: list[int] | None = None,
        group: Any = None,
        async_op: bool = False,
    ) -> Any:
        collective = self._collective("all_to_all_single", group)
        sent = self._observer.outgoing(collective, input)
        ORIGINALS["all_to_all_single"](output, sent, output_split_sizes, input_split_sizes, group=group)
        received = _blocks(output, output_split_sizes, collective.world)
        self._observer.incoming(collective, received, _blocks(input, input_split_sizes, collective.world))
        return _Done() if async_op else None

    def broadcast(
        self,
        tensor: Tensor,
        src: int | None = None,
        group: Any = None,
        async_op: bool = False,
        group_src: int | None = None,
    ) -> Any:
        root = _group_rank(src, group_src, group)
        collective = self._collective("broadcast", group, root)
        own = tensor.clone()
        if collective.rank == collective.root:
            tensor.copy_(self._observer.outgoing(collective, own))
        ORIGINALS["broadcast"](tensor, group=group, group_src=root)
        self._observer.incoming(collective, {root: tensor}, {root: own})
        return _Done() if async_op else None

    def scatter(
        self,
        tensor: Tensor,
        scatter_list: Any = None,
        src: int | None = None,
        group: Any = None,
        group_src: int | None = None,
    ) -> None:
        root = _group_rank(src, group_src, group)
        collective = self._collective("scatter", group, root)
        blocks = scatter_list and [self._observer.outgoing(collective, block) for block in scatter_list]
        ORIGINALS["scatter"](tensor, blocks, group=group, group_src=root)
        self._observer.incoming(collective, {root: tensor}, {root: torch.zeros_like(tensor)})

    def gather(
        self,
        tensor: Tensor,
        gather_list: Any = None,
        dst: int | None = None,
        group: Any = None,
        group_dst: int | None = None,
    ) -> None:
        root = _group_rank(dst, group_dst, group)
        collective = self._collective("gather", group, root)
        ORIGINALS["gather"](self._observer.outgoing(collective, tensor), gather_list, group=group, group_dst=root)
        received = dict(enumerate(gather_list or []))
        self._observer.incoming(collective, received, dict.fromkeys(received, tensor))

    def send(self, tensor: Tensor, dst: int, group: Any = None) -> None:
        collective = self._collective("send", group)
        ORIGINALS["send"](self._observer.outgoing(collective, tensor), dst, group=group)

    def recv(self, tensor: Tensor, src: int, group: Any = None) -> int:
        collective = self._collective("recv", group)
        own = torch.zeros_like(tensor)
        result = ORIGINALS["recv"](tensor, src, group=group)
        self._observer.incoming(collective, {src: tensor}, {src: own})
        return result

    def batch_isend_irecv(self, ops: list[dist.P2POp]) -> list[Any]:
        collective = self._collective("batch_isend_irecv", ops[0].group if ops else None)
        sends = [op for op in ops if op.op is dist.isend]
        receives = [op for op in ops if op.op is dist.irecv]
        for op in sends:
            op.tensor = self._observer.outgoing(collective, op.tensor)
        for work in ORIGINALS["batch_isend_irecv"](ops):
            work.wait()
        for position, op in enumerate(receives):
            like = [s.tensor for s in sends if s.tensor.shape == op.tensor.shape and s.tensor.dtype == op.tensor.dtype]
            own = like[min(position, len(like) - 1)] if like else torch.zeros_like(op.tensor)
            self._observer.incoming(collective, {op.peer: op.tensor}, {op.peer: own})
        return [_Done() for _ in ops]


ORIGINALS: dict[str, Callable[..., Any]] = {
    name: getattr(dist, name) for name in vars(_Wrappers) if not name.startswith("_")
}


def _blocks(tensor: Tensor, sizes: list[int] | None, world: int) -> dict[int, Tensor]:
    sizes = sizes or [tensor.shape[0] // world] * world
    return dict(enumerate(tensor.split(list(sizes))))


def _group_rank(world_rank: int | None, group_rank: int | None, group: Any) -> int:
    """A root may be named by its rank in the world or in the group."""
    if group_rank is not None:
        return group_rank
    root = world_rank or 0
    return dist.get_group_rank(group, root) if group else root
