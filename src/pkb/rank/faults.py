"""Wrong answers that any problem must reject, made by tampering with the reference's communication or results."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.base.pytree import mapped, tensors
from pkb.rank.collective_observer import ORIGINALS, Collective, Observer, observed
from pkb.rank.model_faults import PLANTED


class Fault(Observer):
    """Integers steer an exchange, and tampering with them mostly ends in a crash: only where asked for."""

    def __init__(self, integers: bool):
        super().__init__()
        self.integers = integers

    def tampers_with(self, tensor: Tensor) -> bool:
        return self.integers or _rounds(tensor)


class Silent(Fault):
    """No communication: every collective returns what this rank has of its own."""

    def incoming(self, collective: Collective, received: dict[int, Tensor], local: dict[int, Tensor]) -> None:
        for source, block in received.items():
            if self.tampers_with(block):
                _fill(block, local[source])

    def reduced(self, collective: Collective, result: Tensor, own: Tensor, op: Any, group: Any) -> None:
        if self.tampers_with(result):
            result.copy_(_own_share(collective, result, own))


class Dropped(Fault):
    """One rank's contribution is missing: the last one's, or the root's."""

    def outgoing(self, collective: Collective, tensor: Tensor) -> Tensor:
        dropped = collective.root if collective.kind in ("broadcast", "scatter") else collective.world - 1
        return torch.zeros_like(tensor) if self.tampers_with(tensor) and collective.rank == dropped else tensor


class Swapped(Fault):
    """What came from the first two ranks stands in each other's place."""

    def incoming(self, collective: Collective, received: dict[int, Tensor], local: dict[int, Tensor]) -> None:
        one, two = received.get(0), received.get(1)
        if one is not None and two is not None and one.shape == two.shape and self.tampers_with(one):
            kept = one.clone()
            one.copy_(two)
            two.copy_(kept)


class Float8(Fault):
    """All communication in 8-bit floats."""

    def outgoing(self, collective: Collective, tensor: Tensor) -> Tensor:
        if not tensor.dtype.is_floating_point or tensor.dtype.itemsize == 1:
            return tensor
        return tensor.clamp(-448, 448).to(torch.float8_e4m3fn).to(tensor.dtype)


class Stale(Fault):
    """Remote data is that of the call before."""

    def __init__(self, integers: bool):
        super().__init__(integers)
        self._before: dict[Any, Tensor] = {}

    def _exchange(self, key: Any, fresh: Tensor) -> Tensor | None:
        old, self._before[key] = self._before.get(key), fresh.clone()
        return old if old is not None and old.shape == fresh.shape else None

    def incoming(self, collective: Collective, received: dict[int, Tensor], local: dict[int, Tensor]) -> None:
        for source, block in received.items():
            old = self._exchange((collective.index, source), block)
            if old is not None and source != collective.rank and self.tampers_with(block):
                block.copy_(old)

    def reduced(self, collective: Collective, result: Tensor, own: Tensor, op: Any, group: Any) -> None:
        share = _own_share(collective, result, own)
        remote = result - share if op == dist.ReduceOp.SUM else result
        old = self._exchange(collective.index, remote)
        if old is not None and self.tampers_with(result):
            result.copy_(old + share if op == dist.ReduceOp.SUM else old)


class Reordered(Observer):
    """No fault: sums are taken in float32, last rank first. A right kernel may do so."""

    def reduced(self, collective: Collective, result: Tensor, own: Tensor, op: Any, group: Any) -> None:
        if op != dist.ReduceOp.SUM or not result.dtype.is_floating_point:
            return
        copies = [torch.empty_like(own) for _ in range(collective.world)]
        ORIGINALS["all_gather"](copies, own.contiguous(), group=group)
        wide = torch.float64 if own.dtype is torch.float64 else torch.float32
        total = sum(copy.to(wide) for copy in reversed(copies))
        assert isinstance(total, Tensor)
        if collective.kind != "reduce" or collective.rank == collective.root:
            result.copy_(_own_share(collective, result, total))


def _rounds(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _fill(block: Tensor, local: Tensor) -> None:
    """Put local data of any size into the block, as far as it reaches."""
    flat = local.detach().reshape(-1).to(block.dtype)
    padded = torch.zeros(block.numel(), dtype=block.dtype, device=block.device)
    count = min(flat.numel(), block.numel())
    padded[:count] = flat[:count]
    block.copy_(padded.view(block.shape))


def _own_share(collective: Collective, result: Tensor, own: Tensor) -> Tensor:
    if collective.kind == "reduce_scatter_tensor":
        return own.reshape(collective.world, *result.shape)[collective.rank]
    return own


Output = Callable[[Any, list[Any], int], Any]
"""(this call's output, the ones before, world size) -> what is returned instead"""


def _changed(change: Callable[[Tensor], Tensor]) -> Output:
    return lambda output, before, world: mapped(output, change)


def _constant(output: Any, before: list[Any], world: int) -> Any:
    """The mean of the first call's output, everywhere and in every call."""
    means = iter([_filled(tensor) for tensor in tensors(before[0] if before else output)])

    def constant(tensor: Tensor) -> Tensor:
        mean = next(means, torch.zeros((), dtype=tensor.dtype))
        return torch.full_like(tensor, mean.reshape(-1)[0].item() if mean.numel() else 0)

    return mapped(output, constant)


def _filled(tensor: Tensor) -> Tensor:
    if tensor.numel() == 0:
        return tensor
    mean = tensor.to(torch.complex128 if tensor.dtype.is_complex else torch.float64).mean()
    return torch.full_like(tensor, mean.item()) if _rounds(tensor) else torch.full_like(tensor, round(mean.item()))


def _one_element(tensor: Tensor) -> Tensor:
    """The element of median size changes by a tenth of the root mean square."""
    if tensor.numel() == 0:
        return tensor
    changed = tensor.clone().contiguous()
    flat = changed.view(-1)
    if not _rounds(tensor):
        flat[0] = (flat[0].to(torch.int64) ^ 1).to(flat.dtype)
        return changed
    size = flat.to(torch.complex128 if tensor.dtype.is_complex else torch.float64).abs()
    place = int(size.argsort()[flat.numel() // 2])
    step = 0.1 * size.square().mean().sqrt()
    flat[place] = (flat[place].to(torch.complex128 if tensor.dtype.is_complex else torch.float64) + step).to(flat.dtype)
    return changed


def _previous(output: Any, before: list[Any], world: int) -> Any:
    return mapped(before[-1], Tensor.clone) if before else output


OUTPUTS: dict[str, Output] = {
    "zeros": _changed(torch.zeros_like),
    "constant": _constant,
    "previous-output": _previous,
    "one-element": _changed(_one_element),
    "times-world": lambda output, before, world: mapped(output, lambda t: (t * world).to(t.dtype)),
    "over-world": lambda output, before, world: mapped(output, lambda t: (t / world).to(t.dtype)),
}
OBSERVERS: dict[str, type[Fault]] = {
    "no-communication": Silent,
    "rank-dropped": Dropped,
    "ranks-swapped": Swapped,
    "float8": Float8,
    "stale": Stale,
}
FAULTS = (*OUTPUTS, *OBSERVERS)
RIGHT = "other-order"
"""Not a fault: the variant that must pass."""


def faulty(solution: Callable[..., Any], name: str, integers: bool = False) -> Callable[..., Any]:
    """The solution with one fault planted in it; `integers` lets it tamper with them too."""
    kind, _, number = name.partition(" ")
    if kind in PLANTED:
        return PLANTED[kind](solution, int(number or 0))
    if name in OUTPUTS:
        return _with_output_fault(solution, OUTPUTS[name])
    observer = Reordered() if name == RIGHT else OBSERVERS[name](integers)

    def observed_solution(*args: Any) -> Any:
        observer.new_call()
        with observed(observer):
            return solution(*args)

    return observed_solution


def _with_output_fault(solution: Callable[..., Any], fault: Output) -> Callable[..., Any]:
    before: list[Any] = []

    def spoiled(*args: Any) -> Any:
        output = solution(*args)
        result = fault(output, before, dist.get_world_size())
        before.append(mapped(output, Tensor.clone))
        return result

    return spoiled
