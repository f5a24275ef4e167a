"""Code that cannot be read."""

from collections.abc import Iterable, Iterator

from pkb.screen.facts import COMPILERS, Facts, matches
from pkb.screen.folding import FUNCTIONS
from pkb.screen.reader import Use
from pkb.screen.rule import ANY, BOTH, SCRATCH, Found, rule
from pkb.screen.values import UNKNOWN

_WATCHED = ("torch", "builtins", "os", "sys", "ctypes", "importlib")
_DECODERS = (*(name for name in FUNCTIONS if not name.startswith("builtins.")), "bz2", "lzma", "gzip", "zlib")


@rule("split it, and write plain code", reject=BOTH)
def unreadable(facts: Facts) -> Iterable[Found]:
    """is too large or too deeply nested to be read"""
    return ()


@rule("write the code out", reject=BOTH)
def runs_text(facts: Facts) -> Iterator[Found]:
    """runs code that is not in the file"""
    yield from (use for use in facts.unread if facts.lives(use))
    yield from facts.uses("marshal", "code.InteractiveInterpreter", "codeop")


@rule("write the name out", warn=ANY, reject=SCRATCH)
def computes_names(facts: Facts) -> Iterator[Found]:
    """is looked into by a name that is only known at run time"""
    yield from facts.escapes()
    for use in facts.uses("builtins.getattr", "importlib.import_module", "builtins.__import__", "builtins.vars"):
        if (use.call is None or UNKNOWN in facts.values(use.call, use.scope)) and _watched(facts, use):
            yield use
    for use in facts.uses("torch.__dict__", "torch.*.__dict__", "sys.modules"):
        yield use


def _watched(facts: Facts, use: Use) -> bool:
    """Attributes of tensors and of own objects may have any name."""
    if use.name != "builtins.getattr" or not use.call or not use.call.args:
        return True
    owners = [getattr(v, "name", "") for v in facts.values(use.call.args[0], use.scope)]
    return any(matches(name, _WATCHED) and not matches(name, ("torch.Tensor",)) for name in owners)


@rule("write the text out", warn=BOTH)
def decodes_text(facts: Facts) -> Iterator[Found]:
    """makes text that cannot be read here"""
    for use in facts.uses(*_DECODERS):
        if use.call and UNKNOWN in facts.values(use.call, use.scope):
            yield use


@rule("keep the source in a constant of the file", warn=ANY, reject=SCRATCH)
def hides_its_source(facts: Facts) -> Iterator[Found]:
    """compiles a source that is not in the file"""
    yield from facts.uses("torch.utils.cpp_extension.load")
    for source in facts.sources:
        if matches(source.use.name, COMPILERS) and not source.texts_of_code():
            yield source.use


@rule("keep the source in one constant; pass numbers as arguments or macros", warn=BOTH)
def assembles_its_source(facts: Facts) -> Iterator[Found]:
    """compiles a source that is put together at run time"""
    for source in facts.sources:
        if source.texts_of_code() and not source.whole:
            yield source.use


@rule("do the work in this process", reject=BOTH)
def runs_programs(facts: Facts) -> Iterable[Found]:
    """starts a program or rewrites one, from inside the source"""
    return facts.identifiers(
        "system", "std::system", "popen", "fork", "vfork", "execl*", "execv*", "posix_spawn*", "mprotect"
    )
