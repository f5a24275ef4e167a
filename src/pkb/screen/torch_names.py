"""Full names of things in torch and Python: one spelling for each, and which of them are tensors."""

UNKNOWN_NAME = "?"
TENSOR = "torch.Tensor()"
"""The name of every tensor."""

_SHORTER = {
    "torch.distributed.distributed_c10d.": "torch.distributed.",
    "torch.cuda.streams.": "torch.cuda.",
    "torch.cuda.graphs.": "torch.cuda.",
    "triton.runtime.jit.": "triton.",
}
_LEAKED = ("builtins", "ctypes", "gc", "importlib", "inspect", "os", "subprocess", "sys", "threading", "time", "torch")
"""Modules that other modules import, and that can be reached through them: `torch.os`."""
_VIEWS = {"T", "mT", "H", "mH", "data", "grad", "real", "imag"}
_ABOUT = {
    *("data_ptr", "dim", "dtype", "device", "element_size", "get_device", "is_contiguous", "item", "itemsize"),
    *("nbytes", "ndim", "ndimension", "nelement", "numel", "shape", "size", "storage_offset", "stride", "tolist"),
}
"""Methods of a tensor that return no tensor."""
_NO_TENSORS = {
    *("autocast", "compile", "device", "enable_grad", "finfo", "iinfo", "inference_mode", "manual_seed", "no_grad"),
    *("numel", "promote_types", "result_type", "load", "typename"),
}
"""Functions of torch that return no tensor."""


def join_names(owner: str, *attributes: str) -> str:
    """Return the full name of an attribute, in its shortest spelling."""
    name = owner
    for attribute in attributes:
        name = _append_attribute(name, attribute)
    return _shorten(name)


def name_result(function: str) -> str:
    """Return the name of what a call of this function returns."""
    if function.startswith(UNKNOWN_NAME):
        return UNKNOWN_NAME
    owner, _, last = function.rpartition(".")
    if owner == "torch.Tensor":
        return UNKNOWN_NAME if last in _ABOUT else TENSOR
    if owner == "torch" and last.islower() and last not in _NO_TENSORS and not last.startswith(("is_", "get_", "set_")):
        return TENSOR
    return TENSOR if owner == "torch.nn.functional" else f"{function}()"


def _append_attribute(owner: str, name: str) -> str:
    if name == "__self__" and owner.startswith("builtins."):
        return "builtins"
    if owner.startswith(UNKNOWN_NAME):
        return f"{UNKNOWN_NAME}.{name}"
    if owner == TENSOR or owner.startswith("torch.Tensor."):
        return TENSOR if name in _VIEWS else f"torch.Tensor.{name}"
    return f"{owner}.{name}"


def _shorten(name: str) -> str:
    parts = name.split(".")
    for k in range(len(parts) - 1, 0, -1):
        if parts[k] in _LEAKED and parts[0].isidentifier():
            name = ".".join(parts[k:])
            break
    for long, short in _SHORTER.items():
        if name.startswith(long):
            name = short + name.removeprefix(long)
    return name
