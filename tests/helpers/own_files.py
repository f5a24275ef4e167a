"""A candidate that looks for files of ours, by every path that it could know or guess."""

LIBRARIES = {"triton_lib.py", "symmetric.py", "cuda_lib", "published_lib"}
SEARCH = """
import os, sys

import torch
import torch.distributed as dist

import pkb

PACKAGE = os.path.dirname(pkb.__file__)
ROOT = os.path.dirname(os.path.dirname(PACKAGE))
OURS = [module for name, module in list(sys.modules.items()) if name.startswith("pkb.")]
PLACES = {
    PACKAGE,
    *(os.path.join(ROOT, name) for name in ("solutions", "tests", "redteam", "docs")),
    os.path.join(sys.prefix, "share", "pkb"),
    *(os.path.dirname(module.__file__) for module in OURS if getattr(module, "__file__", None)),
    *GUESSES,
}


def list_readable():
    for place in PLACES:
        for folder, _, names in os.walk(place):
            for name in names:
                try:
                    if open(os.path.join(folder, name), "rb").read(1):
                        yield os.path.relpath(os.path.join(folder, name), PACKAGE).split("/")[0]
                except OSError:
                    pass


def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    if dist.get_rank() == 0:
        raise RuntimeError("found " + " ".join(sorted({*list_readable()})))
    return out
"""


def make_search(*guesses: str) -> bytes:
    """Return a candidate that raises the names of what it can read in pkb's folders and in `guesses`."""
    return SEARCH.replace("*GUESSES", ", ".join(map(repr, guesses)) or "PACKAGE").encode()


def list_found(message: str) -> set[str]:
    """Return what the candidate could read: files and folders in the package, `..` for anything outside."""
    assert message.startswith("found"), message
    return {*message.split()[1:]}
