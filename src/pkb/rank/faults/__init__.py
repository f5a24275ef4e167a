"""Plant faults in a reference: change its communication or its results, so that every problem must reject it."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.base.pytree import iterate_tensors, map_tensors
from pkb.protocol.fault_names import OTHER_ORDER, ROUNDED_SUMS
from pkb.rank.collective_observer import ORIGINALS, Collective, Observer, observe_collectives
from pkb.rank.faults.model_faults import MODEL_FAULTS


class Fault(Observer):
    """The base of faults in communication.

    Integers steer an exchange, and changing them mostly ends in a crash: they are changed only with `integers`.
    """

    def __init__(self, integers: bool):
        super().__init__()
        self.integers = integers

    def may_change(self, tensor: Tensor) -> bool:
        return self.integers or _is_inexact(tensor)


class NoCommunication(Fault):
    """Every collective returns this rank's own data."""

    def observe_receive(self, collective: Collective, received: dict[int, Tensor], local: dict[int, Tensor]) -> None:
        for source, block in received.items():
            if self.may_change(block):
                _fill(block, local[source])

    def observe_reduction(self, collective: Collective, result: Tensor, own: Tensor, op: Any, group: Any) -> None:
        if self.may_change(result):
            result.copy_(_take_share(collective, result, own))


class DroppedRank(Fault):
    """One rank contributes zeros: the root, or the last rank of a collective without a root."""

    def observe_send(self, collective: Collective, tensor: Tensor) -> Tensor:
        dropped = collective.root if collective.kind in ("broadcast", "scatter") else collective.world - 1
        return torch.zeros_like(tensor) if self.may_change(tensor) and collective.rank == dropped else tensor


class SwappedRanks(Fault):
    """The data received from ranks 0 and 1 are swapped."""

    def observe_receive(self, collective: Collective, received: dict[int, Tensor], local: dict[int, Tensor]) -> None:
        one, two = received.get(0), received.get(1)
        if one is not None and two is not None and one.shape == two.shape and self.may_change(one):
            copy = one.clone()
            one.copy_(two)
            two.copy_(copy)


class Float8(Fault):
    """All sent data are rounded to 8-bit floats."""

    def observe_send(self, collective: Collective, tensor: Tensor) -> Tensor:
        if not tensor.dtype.is_floating_point or tensor.dtype.itemsize == 1:
            return tensor
        return tensor.clamp(-448, 448).to(torch.float8_e4m3fn).to(tensor.dtype)


class StaleData(Fault):
    """The data of other ranks are those of the call before."""

    def __init__(self, integers: bool):
        super().__init__(integers)
        self._before: dict[Any, Tensor] = {}
        """Data of the call before, by collective and source."""

    def _exchange(self, key: Any, fresh: Tensor) -> Tensor | None:
        old, self._before[key] = self._before.get(key), fresh.clone()
        return old if old is not None and old.shape == fresh.shape else None

    def observe_receive(self, collective: Collective, received: dict[int, Tensor], local: dict[int, Tensor]) -> None:
        for source, block in received.items():
            old = self._exchange((collective.index, source), block)
            if old is not None and source != collective.rank and self.may_change(block):
                block.copy_(old)

    def observe_reduction(self, collective: Collective, result: Tensor, own: Tensor, op: Any, group: Any) -> None:
        share = _take_share(collective, result, own)
        remote = result - share if op == dist.ReduceOp.SUM else result
        old = self._exchange(collective.index, remote)
        if old is not None and self.may_change(result):
            result.copy_(old + share if op == dist.ReduceOp.SUM else old)


class OtherOrder(Observer):
    """Not a fault: sum last rank first, in float32 or rounded after every rank, as a correct kernel may."""

    def __init__(self, rounded: bool = False):
        super().__init__()
        self.rounded = rounded

    def observe_reduction(self, collective: Collective, result: Tensor, own: Tensor, op: Any, group: Any) -> None:
        if op != dist.ReduceOp.SUM or not result.dtype.is_floating_point:
            return
        copies = [torch.empty_like(own) for _ in range(collective.world)]
        ORIGINALS["all_gather"](copies, own.contiguous(), group=group)
        wide = own.dtype if self.rounded or own.dtype is torch.float64 else torch.float32
        total = sum(copy.to(wide) for copy in reversed(copies))
        assert isinstance(total, Tensor)
        if collective.kind != "reduce" or collective.rank == collective.root:
            result.copy_(_take_share(collective, result, total))


def _is_inexact(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _fill(block: Tensor, local: Tensor) -> None:
    """Overwrite a block with local data: cut to the block's size, or followed by zeros."""
    flat = local.detach().reshape(-1).to(block.dtype)
    padded = torch.zeros(block.numel(), dtype=block.dtype, device=block.device)
    count = min(flat.numel(), block.numel())
    padded[:count] = flat[:count]
    block.copy_(padded.view(block.shape))


def _take_share(collective: Collective, result: Tensor, own: Tensor) -> Tensor:
    """Return the part of `own` that belongs to this rank's result."""
    if collective.kind == "reduce_scatter_tensor":
        return own.reshape(collective.world, *result.shape)[collective.rank]
    return own


OutputFault = Callable[[Any, list[Any], int], Any]
"""Takes this call's output, the outputs of earlier calls and the world size; returns the faulty output."""


def _change_tensors(change: Callable[[Tensor], Tensor]) -> OutputFault:
    return lambda output, before, world: map_tensors(output, change)


def _return_constant(output: Any, before: list[Any], world: int) -> Any:
    """Return the mean of the first call's output, in every element and every call."""
    means = iter([_fill_with_mean(tensor) for tensor in iterate_tensors(before[0] if before else output)])

    def fill(tensor: Tensor) -> Tensor:
        mean = next(means, torch.zeros((), dtype=tensor.dtype))
        return torch.full_like(tensor, mean.reshape(-1)[0].item() if mean.numel() else 0)

    return map_tensors(output, fill)


def _fill_with_mean(tensor: Tensor) -> Tensor:
    if tensor.numel() == 0:
        return tensor
    mean = tensor.to(torch.complex128 if tensor.dtype.is_complex else torch.float64).mean()
    return torch.full_like(tensor, mean.item()) if _is_inexact(tensor) else torch.full_like(tensor, round(mean.item()))


def _change_one_element(tensor: Tensor) -> Tensor:
    """Change the element of median magnitude by a tenth of the root mean square."""
    if tensor.numel() == 0:
        return tensor
    changed = tensor.clone().contiguous()
    flat = changed.view(-1)
    if not _is_inexact(tensor):
        flat[0] = (flat[0].to(torch.int64) ^ 1).to(flat.dtype)
        return changed
    size = flat.to(torch.complex128 if tensor.dtype.is_complex else torch.float64).abs()
    place = int(size.argsort()[flat.numel() // 2])
    step = 0.1 * size.square().mean().sqrt()
    flat[place] = (flat[place].to(torch.complex128 if tensor.dtype.is_complex else torch.float64) + step).to(flat.dtype)
    return changed


def _return_previous(output: Any, before: list[Any], world: int) -> Any:
    return map_tensors(before[-1], Tensor.clone) if before else output


OUTPUT_CHANGES: dict[str, OutputFault] = {
    "zeros": _change_tensors(torch.zeros_like),
    "constant": _return_constant,
    "previous-output": _return_previous,
    "one-element": _change_tensors(_change_one_element),
    "times-world": lambda output, before, world: map_tensors(output, lambda t: (t * world).to(t.dtype)),
    "over-world": lambda output, before, world: map_tensors(output, lambda t: (t / world).to(t.dtype)),
}
OBSERVERS: dict[str, type[Fault]] = {
    "no-communication": NoCommunication,
    "rank-dropped": DroppedRank,
    "ranks-swapped": SwappedRanks,
    "float8": Float8,
    "stale": StaleData,
}


def plant_fault(solution: Callable[..., Any], name: str, integers: bool = False) -> Callable[..., Any]:
    """Return the solution with the named fault in it; `integers` lets the fault change integers too."""
    kind, _, number = name.partition(" ")
    if kind in MODEL_FAULTS:
        return MODEL_FAULTS[kind](solution, int(number or 0))
    if name in OUTPUT_CHANGES:
        return _plant_output_fault(solution, OUTPUT_CHANGES[name])
    right = name in (OTHER_ORDER, ROUNDED_SUMS)
    observer = OtherOrder(rounded=name == ROUNDED_SUMS) if right else OBSERVERS[name](integers)

    def run_observed(*args: Any) -> Any:
        observer.begin_call()
        with observe_collectives(observer):
            return solution(*args)

    return run_observed


def _plant_output_fault(solution: Callable[..., Any], fault: OutputFault) -> Callable[..., Any]:
    before: list[Any] = []

    def run_with_fault(*args: Any) -> Any:
        output = solution(*args)
        result = fault(output, before, dist.get_world_size())
        before.append(map_tensors(output, Tensor.clone))
        return result

    return run_with_fault
