"""What the judge and the ranks agree on about extensions that a candidate compiles with torch."""

from pkb.base.python_source import find_imports, find_strings

MODULES = ("torch.utils.cpp_extension", "utils.cuda_helpers")
"""The modules whose functions compile extensions: torch's, with `load` and `load_inline`, and one that calls these."""
SLOW_IMPORTS = ("setuptools.command.build_ext", "torch.utils.hipify.hipify_python")
"""Modules that the first imports, for a good part of a second. Unlike it, they do not look for GPUs, so that a
process that must not touch a GPU can import them."""
FINISHED = "finished"
"""The file next to a library that has been compiled to its end."""


def may_compile(source: bytes) -> bool:
    """Return whether a candidate's source may compile an extension."""
    return not {*MODULES}.isdisjoint({*find_imports(source), *find_strings(source)})
