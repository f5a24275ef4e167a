"""Observe communication by torch's own classes, whoever holds one: process groups, backends, stores, remote calls."""

import contextlib
import pickle
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from pkb.rank.observers import Note, Pause, hide, list_subclasses, wrap

_MOVES = (
    *("allgather", "allgather_coalesced", "allgather_into_tensor_coalesced", "_allgather_base", "allreduce"),
    *("allreduce_coalesced", "alltoall", "alltoall_base", "broadcast", "gather", "recv", "recv_anysource", "reduce"),
    *("reduce_scatter", "reduce_scatter_tensor_coalesced", "_reduce_scatter_base", "scatter", "send"),
    *("all_gather_single", "reduce_scatter_single", "all_to_all_single", "_all_gather_base"),
)
"""Methods of process groups and their backends that move data."""
_LOCAL = {"set_timeout", "timeout", "clone", "has_extended_api"}
"""Methods of stores that reach no other rank."""
_EXCHANGES = (
    *("all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list", "send_object_list"),
    *("recv_object_list",),
)
_NUMBER_BYTES = 8
Count = Callable[[int], None]
"""Notes an exchange on the host, and its bytes."""


def observe_groups(note: Note) -> None:
    """Note every call that moves data, of all kinds of process groups, of NCCL's own functions and of remote calls."""
    for owner in {*list_subclasses(dist.ProcessGroup), *list_subclasses(c10d.Backend)}:
        for name in _MOVES:
            if name in vars(owner):
                _note_calls(owner, name, note, f"ProcessGroup.{owner.__name__}.{name}")
    for name in (name for name in dir(torch._C) if name.startswith("_nccl_") and "version" not in name):
        _note_calls(torch._C, name, note, f"nccl.{name}")
    if agent := getattr(getattr(torch._C, "_distributed_rpc", None), "TensorPipeAgent", None):
        _note_calls(agent, "__init__", note, "rpc.TensorPipeAgent")


def observe_stores(count: Count) -> None:
    """Count every operation on a store and its bytes: a key that exists, or not, says something too."""
    collectives = [getattr(c10d, name) for name in ("_ControlCollectives", "_StoreCollectives") if hasattr(c10d, name)]
    for owner in {*list_subclasses(c10d.Store), *collectives}:
        for name, method in list(vars(owner).items()):
            if not name.startswith("_") and name not in _LOCAL and callable(method):
                setattr(owner, name, hide(wrap(method, lambda _, *args, **kwargs: count(_measure(args, kwargs)))))


def observe_exchanges(count: Count, pause: Pause) -> None:
    """Count the bytes of exchanged objects; the collectives that carry them are not noted as the candidate's own."""
    for name in _EXCHANGES:
        if original := getattr(dist, name, None):
            observed = hide(_count_objects(original, count, pause))
            for module in (dist, dist.distributed_c10d):
                setattr(module, name, observed)


def _count_objects(original: Callable[..., Any], count: Count, pause: Pause) -> Callable[..., Any]:
    @wraps(original)
    def exchange(*args: Any, **kwargs: Any) -> Any:
        plain = [arg for arg in (*args, *kwargs.values()) if not isinstance(arg, dist.ProcessGroup)]
        count(_measure_objects(plain))
        with pause.hold():
            return original(*args, **kwargs)

    return exchange


def _measure_objects(plain: list[Any]) -> int:
    # What cannot be pickled is an error of the original function.
    with contextlib.suppress(Exception):
        return len(pickle.dumps(plain))
    return 0


def _note_calls(owner: Any, name: str, note: Note, full_name: str) -> None:
    setattr(owner, name, wrap(getattr(owner, name), lambda *_, **__: note(full_name)))


def _measure(*values: Any) -> int:
    """Return the bytes of texts and numbers, however they are nested."""
    total = 0
    for value in values:
        if isinstance(value, dict):
            total += _measure(*value, *value.values())
        elif isinstance(value, list | tuple):
            total += _measure(*value)
        else:
            total += len(value) if isinstance(value, str | bytes | bytearray) else _NUMBER_BYTES
    return total
