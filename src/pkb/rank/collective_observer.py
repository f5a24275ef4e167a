"""Route torch.distributed through an observer, which sees what each collective sends and receives, and may change it.

`pkb lint` plants faults with observers, and the tests count what references send.
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
    """The number of collectives that this call of the solution made before."""
    rank: int
    world: int
    root: int | None = None
    """For collectives with a root, the root's rank in the group."""


class Observer:
    """Sees every collective and changes nothing; subclasses override what they observe or change."""

    def __init__(self) -> None:
        self.calls = 0

    def begin_call(self) -> None:
        """Note that the solution is about to be called."""
        self.calls += 1

    def observe_send(self, collective: Collective, tensor: Tensor) -> Tensor:
        """Return what is sent in place of `tensor`."""
        return tensor

    def observe_receive(self, collective: Collective, received: dict[int, Tensor], local: dict[int, Tensor]) -> None:
        """See, or change in place, the received data by source; `local` is this rank's own data in the same places."""

    def observe_reduction(self, collective: Collective, result: Tensor, own: Tensor, op: Any, group: Any) -> None:
        """See, or change in place, the result of a reduction; `own` is this rank's contribution."""


class CompletedWork:
    """A work handle that is complete: every observed collective is synchronous."""

    def wait(self, *_: Any) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


@contextmanager
def observe_collectives(observer: Observer) -> Iterator[None]:
    """Replace the collectives of torch.distributed by ones that report to `observer`."""
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
    """Methods with the names and parameters of the collectives in torch.distributed."""

    def __init__(self, observer: Observer):
        self._observer = observer
        self._index = 0
        self._call = observer.calls

    def _begin(self, kind: str, group: Any, root: int | None = None) -> Collective:
        """Describe the next collective; `root` is a rank of the group."""
        if self._call != self._observer.calls:
            self._call, self._index = self._observer.calls, 0
        self._index += 1
        return Collective(kind, self._index - 1, dist.get_rank(group), dist.get_world_size(group), root)

    def all_reduce(self, tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
        return self._reduce_in_place("all_reduce", tensor, op, group, async_op)

    def reduce(
        self,
        tensor: Tensor,
        dst: int | None = None,
        op: Any = dist.ReduceOp.SUM,
        group: Any = None,
        async_op: bool = False,
        group_dst: int | None = None,
    ) -> Any:
        return self._reduce_in_place("reduce", tensor, op, group, async_op, find_group_rank(dst, group_dst, group))

    def _reduce_in_place(
        self, kind: str, tensor: Tensor, op: Any, group: Any, async_op: bool, root: int | None = None
    ) -> Any:
        collective = self._begin(kind, group, root)
        own = tensor.clone()
        tensor.copy_(self._observer.observe_send(collective, own))
        place = {} if root is None else {"group_dst": root}
        ORIGINALS[kind](tensor, op=op, group=group, **place)
        self._observer.observe_reduction(collective, tensor, own, op, group)
        return CompletedWork() if async_op else None

    def reduce_scatter_tensor(
        self, output: Tensor, input: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        collective = self._begin("reduce_scatter_tensor", group)
        ORIGINALS["reduce_scatter_tensor"](output, self._observer.observe_send(collective, input), op=op, group=group)
        self._observer.observe_reduction(collective, output, input, op, group)
        return CompletedWork() if async_op else None

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
        collective = self._begin(kind, group)
        local = own.clone()
        run(self._observer.observe_send(collective, own))
        sources = range(collective.world)
        self._observer.observe_receive(
            collective, dict(zip(sources, blocks, strict=True)), dict.fromkeys(sources, local)
        )
        return CompletedWork() if async_op else None

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: list[int] | None = None,
        input_split_sizes: list[int] | None = None,
        group: Any = None,
        async_op: bool = False,
    ) -> Any:
        collective = self._begin("all_to_all_single", group)
        sent = self._observer.observe_send(collective, input)
        ORIGINALS["all_to_all_single"](output, sent, output_split_sizes, input_split_sizes, group=group)
        received = _split_blocks(output, output_split_sizes, collective.world)
        self._observer.observe_receive(collective, received, _split_blocks(input, input_split_sizes, collective.world))
        return CompletedWork() if async_op else None

    def broadcast(
        self,
        tensor: Tensor,
        src: int | None = None,
        group: Any = None,
        async_op: bool = False,
        group_src: int | None = None,
    ) -> Any:
        root = find_group_rank(src, group_src, group)
        collective = self._begin("broadcast", group, root)
        own = tensor.clone()
        if collective.rank == collective.root:
            tensor.copy_(self._observer.observe_send(collective, own))
        ORIGINALS["broadcast"](tensor, group=group, group_src=root)
        self._observer.observe_receive(collective, {root: tensor}, {root: own})
        return CompletedWork() if async_op else None

    def scatter(
        self,
        tensor: Tensor,
        scatter_list: Any = None,
        src: int | None = None,
        group: Any = None,
        group_src: int | None = None,
    ) -> None:
        root = find_group_rank(src, group_src, group)
        collective = self._begin("scatter", group, root)
        blocks = scatter_list and [self._observer.observe_send(collective, block) for block in scatter_list]
        ORIGINALS["scatter"](tensor, blocks, group=group, group_src=root)
        self._observer.observe_receive(collective, {root: tensor}, {root: torch.zeros_like(tensor)})

    def gather(
        self,
        tensor: Tensor,
        gather_list: Any = None,
        dst: int | None = None,
        group: Any = None,
        group_dst: int | None = None,
    ) -> None:
        root = find_group_rank(dst, group_dst, group)
        collective = self._begin("gather", group, root)
        ORIGINALS["gather"](self._observer.observe_send(collective, tensor), gather_list, group=group, group_dst=root)
        received = dict(enumerate(gather_list or []))
        self._observer.observe_receive(collective, received, dict.fromkeys(received, tensor))

    def send(self, tensor: Tensor, dst: int, group: Any = None) -> None:
        collective = self._begin("send", group)
        ORIGINALS["send"](self._observer.observe_send(collective, tensor), dst, group=group)

    def recv(self, tensor: Tensor, src: int, group: Any = None) -> int:
        collective = self._begin("recv", group)
        own = torch.zeros_like(tensor)
        result = ORIGINALS["recv"](tensor, src, group=group)
        self._observer.observe_receive(collective, {src: tensor}, {src: own})
        return result

    def batch_isend_irecv(self, ops: list[dist.P2POp]) -> list[Any]:
        collective = self._begin("batch_isend_irecv", ops[0].group if ops else None)
        sends = [op for op in ops if op.op is dist.isend]
        receives = [op for op in ops if op.op is dist.irecv]
        for op in sends:
            op.tensor = self._observer.observe_send(collective, op.tensor)
        for work in ORIGINALS["batch_isend_irecv"](ops):
            work.wait()
        for position, op in enumerate(receives):
            like = [s.tensor for s in sends if s.tensor.shape == op.tensor.shape and s.tensor.dtype == op.tensor.dtype]
            own = like[min(position, len(like) - 1)] if like else torch.zeros_like(op.tensor)
            self._observer.observe_receive(collective, {op.peer: op.tensor}, {op.peer: own})
        return [CompletedWork() for _ in ops]


ORIGINALS: dict[str, Callable[..., Any]] = {
    name: getattr(dist, name) for name in vars(_Wrappers) if not name.startswith("_")
}


def _split_blocks(tensor: Tensor, sizes: list[int] | None, world: int) -> dict[int, Tensor]:
    sizes = sizes or [tensor.shape[0] // world] * world
    return dict(enumerate(tensor.split(list(sizes))))


def find_group_rank(world_rank: int | None, group_rank: int | None, group: Any) -> int:
    """Return the root's rank in the group; callers name it by its rank in the world or in the group."""
    if group_rank is not None:
        return group_rank
    root = world_rank or 0
    return dist.get_group_rank(group, root) if group else root
