"""Code that cannot be read."""

import ast
import builtins
from collections.abc import Iterable, Iterator

from pkb.backends import list_compilers
from pkb.screen.facts import Facts, Hit, is_under
from pkb.screen.rule import ANY, BOTH, SCRATCH, Spot, rule
from pkb.screen.torch_names import UNKNOWN_NAME

_WATCHED = ("torch", "builtins", "os", "sys", "ctypes", "importlib")
"""Modules whose attributes must be named; attributes of tensors and of the file's own objects need not be."""
_DECODERS = (
    *("base64.*decode*", "binascii.a2b_*", "binascii.unhexlify", "codecs.decode", "codecs.encode"),
    *("bz2", "gzip", "lzma", "zlib"),
)


@rule("split it, and write plain code", reject=BOTH)
def unreadable(facts: Facts) -> Iterable[Spot]:
    """is too large or too deeply nested to be read"""
    return ()


@rule("write the code out", reject=BOTH)
def runs_text(facts: Facts) -> Iterator[Spot]:
    """runs code that is not in the file"""
    yield from (use for use in facts.unread if facts.is_live(use))
    yield from facts.find_uses("marshal", "code.InteractiveInterpreter", "codeop")
    for use in facts.find_uses("builtins"):
        if use.name == f"builtins.{UNKNOWN_NAME}":
            yield Hit(use.line, "a builtin function with a computed name")


_LOOK_UPS = (
    "pkgutil.resolve_name",
    "string.Formatter",
    "_string",
    "pydoc.locate",
    "pydoc.resolve",
    "inspect.getattr_static",
)
"""Functions of the standard library that find an attribute by a name in a text."""


@rule("write the name out", warn=ANY, reject=SCRATCH)
def computes_names(facts: Facts) -> Iterator[Spot]:
    """is looked into by a name that is only known at run time"""
    yield from facts.escapes
    for use in facts.find_uses(*_WATCHED):
        is_look_up = use.name.endswith(f".{UNKNOWN_NAME}") and isinstance(use.node, ast.Call | ast.Subscript)
        if is_look_up and not is_under(use.name, ("torch.Tensor", "builtins.super")):
            yield use
    for use in facts.find_uses("builtins.getattr", "importlib.import_module", "builtins.__import__", "builtins.vars"):
        if use.call is None:
            yield use
    yield from facts.find_uses(*_LOOK_UPS)
    for node in ast.walk(facts.tree):
        # A pattern of an own class names its own fields; builtins match anything.
        if isinstance(node, ast.MatchClass) and node.kwd_attrs and ast.unparse(node.cls) in dir(builtins):
            yield Hit(node.lineno, f"the pattern {ast.unparse(node)}")
    for use in facts.find_uses("torch.__dict__", "torch.*.__dict__", "sys.modules"):
        if UNKNOWN_NAME not in use.name:
            yield use


@rule("write the text out", warn=BOTH)
def decodes_text(facts: Facts) -> Iterator[Spot]:
    """makes text that cannot be read here"""
    yield from (use for use in facts.find_uses(*_DECODERS) if use.call)


@rule("keep the source in a constant of the file", warn=ANY, reject=SCRATCH)
def hides_its_source(facts: Facts) -> Iterator[Spot]:
    """compiles a source that is not in the file"""
    yield from facts.find_uses("torch.utils.cpp_extension.load")
    for source in facts.sources:
        if is_under(source.use.name, list_compilers()) and not source.code:
            yield source.use


@rule("keep the source in one constant; pass numbers as arguments or macros", warn=BOTH)
def assembles_its_source(facts: Facts) -> Iterator[Spot]:
    """compiles a source that is put together at run time"""
    for source in facts.sources:
        if source.code and not source.is_whole:
            yield source.use


@rule("do the work in this process", reject=BOTH)
def runs_programs(facts: Facts) -> Iterable[Spot]:
    """starts a program or rewrites one, from inside the source"""
    return facts.find_identifiers(
        "system", "std::system", "popen", "fork", "vfork", "execl*", "execv*", "posix_spawn*", "mprotect"
    )
