"""Is this output right? Its error against the oracle, measured by the reference's own.

The oracle is the reference in float64 on the same inputs. An output passes when its error, in the root mean
square and in the worst element, is at most a small multiple of the reference's error or of the rounding that
any honest kernel in this dtype may do. Both scale with the values, so that neither zeros nor a constant can
pass and a correct kernel with another order of sums never fails.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pkb.base.tensors import view_bytes
from pkb.settings import Tolerance

RMS_FACTOR = 3.0
WORST_FACTOR = 4.0
STEPWISE_RMS_FACTOR, STEPWISE_WORST_FACTOR = 1.5, 2.0
"""Of the reference's error where sums over ranks are rounded after every rank: only the order of ranks is free then."""
FEW_VALUES = 4.0
"""The root mean square of N values scatters: it may be this many standard deviations over the square root of N. One
normal value in sixteen thousand is beyond four."""
_ENOUGH_VALUES = (FEW_VALUES / RMS_FACTOR) ** 2
# Roundings, in units of the dtype's own, that a correct kernel may add whatever the reference did: in
# 16 bits one more; in wider ones what another order of a long sum costs, still far below TF32's 2^-11.
NARROW_FLOOR, WIDE_FLOOR = 1.0, 32.0
_CHUNK = 1 << 14
"""Elements that stay in a core's cache from one step to the next, and are too few for torch to wake other threads:
on 16 cores that took longer than the work."""


@dataclass(frozen=True)
class OwnError:
    """The reference's error against the oracle."""

    rms: float
    worst: float

    @classmethod
    def pool(cls, errors: list["OwnError"]) -> "OwnError":
        """Return the typical error of one call among several: one call's few values may be right by luck."""
        if not errors:
            return cls(0.0, 0.0)
        pairs = zip(*((one.rms, one.worst) for one in errors), strict=True)
        rms, worst = (math.sqrt(sum(e**2 for e in es) / len(es)) for es in pairs)
        return cls(rms, worst)

    def at_least(self, other: "OwnError") -> "OwnError":
        return OwnError(max(self.rms, other.rms), max(self.worst, other.worst))


@dataclass(frozen=True)
class Expected:
    """One output tensor of the reference, and the same from the oracle."""

    reference: Tensor
    oracle: Tensor
    exact: bool
    """Compare bit for bit."""
    own: OwnError
    scale: float
    """The oracle's typical value."""
    stepwise: OwnError = OwnError(0.0, 0.0)
    """The reference's error where sums over ranks are rounded after every rank; none where there are no such sums."""

    @classmethod
    def of(cls, reference: Tensor, oracle: Tensor, exact: bool = False) -> "Expected":
        if exact or not _rounds(reference.dtype):
            return cls(reference, oracle, True, OwnError(0.0, 0.0), 0.0)
        scale = _scale(oracle)
        return cls(reference, oracle, False, OwnError(*_rms_and_worst(reference, oracle, scale)), scale)

    def allow_errors_of(self, stepwise: Tensor) -> "Expected":
        """Return what is expected where the reference, with sums rounded after every rank, returned `stepwise`."""
        if self.exact or overflows(stepwise, self.oracle):
            return self
        return replace(self, stepwise=OwnError(*_rms_and_worst(stepwise, self.oracle, self.scale)))

    def allow_at_least(self, own: OwnError, stepwise: OwnError) -> "Expected":
        return replace(self, own=self.own.at_least(own), stepwise=self.stepwise.at_least(stepwise))


@dataclass(frozen=True)
class Mismatch:
    """What differs: how many of how many, the worst element, and the errors against what is allowed."""

    rule: str
    differing: int
    total: int
    index: list[int]
    got: Any
    expected: Any
    measured: dict[str, float]

    def in_words(self) -> str:
        return (
            f"{self.differing} of {self.total} elements differ ({self.rule}); "
            f"worst at {self.index}: got {self.got}, expected {self.expected}"
        )


def compare(actual: Tensor, expected: Expected, tolerance: Tolerance | None = None) -> Mismatch | None:
    """None when `actual`, of the reference's shape and dtype, is right."""
    if actual.numel() == 0:
        return None
    if expected.exact:
        return _compare_bits(actual, expected.reference)
    if tolerance:
        return _compare_plainly(actual, expected.reference, tolerance)
    return _compare_to_oracle(actual, expected)


def compare_together(outputs: Sequence[tuple[Tensor, Expected]]) -> tuple[int, Mismatch] | None:
    """Return the worst of these outputs, and what differs, if they err too much together.

    They are the same output in several calls. What a few values may be off each, they may not be off all the time.
    """
    outputs = [(actual, expected) for actual, expected in outputs if not expected.exact and actual.numel()]
    count = sum(actual.numel() for actual, _ in outputs)
    if not outputs or outputs[0][0].numel() >= _ENOUGH_VALUES:
        return None
    allowed = [OwnError(*find_allowed(expected, count)) for _, expected in outputs]
    found = [OwnError(*_rms_and_worst(actual, expected.oracle, expected.scale)) for actual, expected in outputs]
    shares = [error.rms / limit.rms if limit.rms else 0.0 for error, limit in zip(found, allowed, strict=True)]
    if sum(share**2 for share in shares) <= len(shares):
        return None
    k = shares.index(max(shares))
    return k, _describe_errors(*outputs[k], found[k], allowed[k])


def measure_error(actual: Tensor, reference: Tensor) -> tuple[float, float]:
    """Return the relative error, in the root mean square and in the worst element, by which two tensors differ."""
    wide = _wide(reference)
    return _rms_and_worst(actual, wide, _scale(wide))


def overflows(reference: Tensor, oracle: Tensor) -> bool:
    """Whether the reference left its dtype's range where the oracle did not: it is then no measure."""
    wide = _wide(reference)
    return not _is_finite(wide) and bool((~torch.isfinite(wide) & torch.isfinite(_wide(oracle))).any())


def _rounds(dtype: torch.dtype) -> bool:
    """Whether nearly right is right. The codes of an 8-bit float are as discrete as integers."""
    return (dtype.is_floating_point and dtype.itemsize > 1) or dtype.is_complex


def _compare_bits(actual: Tensor, reference: Tensor) -> Mismatch | None:
    # By numpy, which keeps to this thread; waking others takes longer than this does.
    if np.array_equal(view_bytes(actual).numpy(), view_bytes(reference).numpy()) or torch.equal(
        _words(actual), _words(reference)
    ):
        return None
    wrong = (_words(actual) != _words(reference)).any(dim=-1).reshape(actual.shape)
    return _mismatch("bit for bit", wrong, wrong.double(), actual, reference, {})


def _words(tensor: Tensor) -> Tensor:
    """One row of bytes per element. Zero has two signs, and either is right."""
    if _rounds(tensor.dtype):
        tensor = torch.where(tensor == 0, torch.zeros_like(tensor), tensor)
    return view_bytes(tensor)


def _compare_plainly(actual: Tensor, reference: Tensor, tolerance: Tolerance) -> Mismatch | None:
    error = _error(actual, _wide(reference))
    allowed = tolerance.atol + tolerance.rtol * _wide(reference).abs()
    wrong = ~(error <= allowed)
    if not wrong.any():
        return None
    rule = f"atol {tolerance.atol:g}, rtol {tolerance.rtol:g}"
    return _mismatch(rule, wrong, error, actual, reference, {})


def _compare_to_oracle(actual: Tensor, expected: Expected) -> Mismatch | None:
    scale = expected.scale
    rms_allowed, worst_allowed = find_allowed(expected, actual.numel())
    for errors in (_at_the_most, _rms_and_worst):
        rms, worst = errors(actual, expected.oracle, scale)
        if rms <= rms_allowed and worst <= worst_allowed:
            return None
    return _describe_errors(actual, expected, OwnError(rms, worst), OwnError(rms_allowed, worst_allowed))


def find_allowed(expected: Expected, count: int) -> tuple[float, float]:
    """Return the errors that `count` values may have, in the root mean square and in the worst of them."""
    own, stepwise = expected.own, expected.stepwise
    floor = _floor(expected.reference.dtype) if expected.scale else 0.0
    few = FEW_VALUES / math.sqrt(count)
    # The root mean square of a rounding is less than half of its worst case.
    rms = (RMS_FACTOR * 0.5 * floor, max(RMS_FACTOR, few) * own.rms, max(STEPWISE_RMS_FACTOR, few) * stepwise.rms)
    worst = (WORST_FACTOR * floor, max(WORST_FACTOR, few) * own.worst)
    return max(rms), max(*worst, max(STEPWISE_WORST_FACTOR, few) * stepwise.worst)


def _describe_errors(actual: Tensor, expected: Expected, found: OwnError, allowed: OwnError) -> Mismatch:
    measured = {
        "rms_error": found.rms,
        "rms_allowed": allowed.rms,
        "worst_error": found.worst,
        "worst_allowed": allowed.worst,
        "rms_value": expected.scale,
    }
    error = _relative_error(actual, _wide(expected.oracle), expected.scale)
    beyond = ~(error <= allowed.worst)
    wrong = beyond if beyond.any() else ~(error <= allowed.rms)
    return _mismatch(_rule(measured), wrong, error, actual, expected.oracle, measured)


def _rule(measured: dict[str, float]) -> str:
    name = "rms" if not measured["rms_error"] <= measured["rms_allowed"] else "worst"
    return f"relative {name} error {measured[f'{name}_error']:.3g}, allowed {measured[f'{name}_allowed']:.3g}"


def _at_the_most(actual: Tensor, oracle: Tensor, scale: float) -> tuple[float, float]:
    """No less than the relative errors, in fewer steps: as if no value were larger than the typical one."""
    return _over_pieces(_distance, actual, oracle, scale)


def _rms_and_worst(actual: Tensor, oracle: Tensor, scale: float) -> tuple[float, float]:
    """The relative error, in the root mean square and in the worst element."""
    return _over_pieces(_norm_and_worst, actual, oracle, scale)


def _over_pieces(
    norm_and_worst: Callable[[Tensor, Tensor, float], tuple[float, float]],
    actual: Tensor,
    oracle: Tensor,
    scale: float,
) -> tuple[float, float]:
    if not actual.numel():
        return 0.0, 0.0
    pairs = zip(actual.reshape(-1).split(_CHUNK), oracle.reshape(-1).split(_CHUNK), strict=True)
    norms, worst = np.array([norm_and_worst(got, _wide(right), scale) for got, right in pairs]).T
    return float(np.linalg.norm(norms)) / math.sqrt(actual.numel()), float(worst.max())


def _distance(actual: Tensor, oracle: Tensor, scale: float) -> tuple[float, float]:
    error = (actual - oracle).abs()
    unit = scale or 1.0
    return float(torch.linalg.vector_norm(error)) / unit, float(error.max()) / unit


def _norm_and_worst(actual: Tensor, oracle: Tensor, scale: float) -> tuple[float, float]:
    """Return the norm and the worst of a piece's relative error, in few steps where everything is finite."""
    error = (_wide(actual) - oracle).abs().div_(oracle.abs().clamp_(min=scale or 1.0))
    worst = float(error.max())
    if not math.isfinite(worst):
        error = _relative_error(actual, oracle, scale)
        worst = float(error.max())
    return float(torch.linalg.vector_norm(error)), worst


def _relative_error(actual: Tensor, oracle: Tensor, scale: float) -> Tensor:
    """Return each error in units of its own value or of the typical one, `scale`, whichever is larger.

    A rare large value must not excuse errors elsewhere, nor a value near zero, left by cancellation, forbid them.
    """
    size = oracle.abs()
    unit = (size if _is_finite(size) else torch.where(torch.isfinite(size), size, 0.0)).clamp(min=scale or 1.0)
    return _error(actual, oracle) / unit


def _scale(oracle: Tensor) -> float:
    typical = _rms(oracle)
    return typical if math.isfinite(typical) else _rms(oracle[torch.isfinite(oracle)])


def _error(actual: Tensor, oracle: Tensor) -> Tensor:
    """Return the distance to the oracle. Where that is not finite, the same value is no error, any other infinite."""
    wide = _wide(actual)
    error = (wide - oracle).abs()
    if _is_finite(error):
        return error
    alike = (wide == oracle) | (wide.isnan() & oracle.isnan())
    special = ~torch.isfinite(oracle) | ~torch.isfinite(wide)
    return torch.where(special, torch.where(alike, 0.0, math.inf), error)


def _is_finite(wide: Tensor) -> bool:
    """Whether every element is finite, by one pass; a sum that overflows only leads to a closer look."""
    return math.isfinite(float(torch.linalg.vector_norm(wide, 1)))


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.dtype.is_complex else torch.float64)


def _floor(dtype: torch.dtype) -> float:
    one_rounding = torch.finfo(dtype).eps / 2
    return one_rounding * (NARROW_FLOOR if dtype.itemsize == 2 else WIDE_FLOOR)


def _rms(values: Tensor) -> float:
    return float(torch.linalg.vector_norm(_wide(values))) / math.sqrt(values.numel()) if values.numel() else 0.0


def _mismatch(
    rule: str, wrong: Tensor, error: Tensor, actual: Tensor, expected: Tensor, measured: dict[str, float]
) -> Mismatch:
    ranked = torch.where(wrong, error, -1.0)
    flat = int(ranked.argmax())
    # Not torch's: it would import a compiler first.
    index = [int(i) for i in np.unravel_index(flat, actual.shape)] if actual.dim() else []
    return Mismatch(
        rule=rule,
        differing=int(wrong.sum()),
        total=actual.numel(),
        index=index,
        got=_plain(actual.reshape(-1)[flat]),
        expected=_plain(expected.reshape(-1)[flat]),
        measured={key: value if math.isfinite(value) else str(value) for key, value in measured.items()},  # type: ignore[misc]
    )


def _plain(element: Tensor) -> Any:
    value = element.to(torch.float64).item() if element.dtype.is_floating_point else element.item()
    return value if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)) else str(value)
