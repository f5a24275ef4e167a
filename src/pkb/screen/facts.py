"""What a file does, as far as it can be told without running it. Rules look only at this."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from fnmatch import translate
from functools import cache, cached_property
from typing import NamedTuple

from pkb.screen.c_source import Identifier
from pkb.screen.compiled_sources import Text, texts_of
from pkb.screen.fixpoint import TooComplex
from pkb.screen.names import Names
from pkb.screen.reader import RUNNERS, Reader, Reference, Use
from pkb.screen.scopes import Assigned, Definition, Function, Scope
from pkb.screen.values import Folded, Local, Value

ENTRIES = ("solution", "ModelNew")
"""What a candidate's file defines: a function, or a model."""
_DEEPEST_TEXT = 4
_MOST_TEXT = 1 << 20
_CACHES = {"functools.cache", "functools.lru_cache"}
COMPILERS = (
    *("torch.utils.cpp_extension.load_inline", "torch.cuda._compile_kernel", "pkb.cuda_lib.compile*"),
    *("cupy.RawKernel", "cupy.RawModule", "pycuda.compiler.SourceModule"),
)
"""They compile the source that they are given."""
_TAKE_SOURCES = (*COMPILERS, "pkb.cuda_lib.*", "torch.utils.cpp_extension.load")


class Hit(NamedTuple):
    """Where a rule found something, and what it is called there."""

    line: int
    what: str


class Source(NamedTuple):
    use: Use
    """The call that compiles it."""
    texts: list[Text]
    whole: bool
    """The texts are all of it."""

    def texts_of_code(self) -> list[Text]:
        """Those that are more than names and flags."""
        return [text for text in self.texts if "(" in text.value]


class Facts:
    def __init__(self, tree: ast.Module, backend: str):
        self.backend = backend
        self.unread = self._read(tree)
        """Where code is run that cannot be read here."""
        self._edges: dict[Definition | None, list[Definition]] = {}
        for reference in self._reader.references:
            self._edges.setdefault(reference.origin, []).append(reference.target)
        self.hot = self.reached({node for name in ENTRIES for node in self._entry(name)})
        """Functions that what is judged may call."""
        self.reachable = self.hot | self.reached(self._edges.get(None, []))
        """Those, and all that importing the file may call."""

    def _read(self, tree: ast.Module) -> list[Use]:
        """Sources in constants that are run become part of the file, and it is read again."""
        known: set[str] = set()
        for _ in range(_DEEPEST_TEXT):
            self.tree, self.names = tree, Names(tree)
            self._reader = Reader(tree, self.names)
            fresh = [(text, line) for text, line in self._reader.texts if text not in known]
            if not fresh:
                return self._reader.unread
            known |= {text for text, _ in fresh}
            if sum(map(len, known)) > _MOST_TEXT:
                raise TooComplex
            added = [statement for text, line in fresh for statement in _parsed(text, line)]
            tree = ast.Module([*tree.body, *added], [])
        return [use for use in self._reader.uses if matches(use.name, RUNNERS)]

    def _entry(self, name: str) -> set[Definition]:
        """What the name stands for, and whatever the expression that it is bound to mentions."""
        assigned = [b.expr for b in self.names.module.lookup(name) if isinstance(b, Assigned)]
        inside = {node for expr in assigned for node in ast.walk(expr)}
        mentioned = {r.target for r in self._reader.references if r.node in inside}
        value = self.names.values(ast.Name(name, ast.Load()), self.names.module)
        return mentioned | {v.node for v in value if isinstance(v, Local)}

    def reached(self, start: Iterable[Definition]) -> set[Definition]:
        """Everything that code in `start` may call in turn, itself included."""
        found: set[Definition] = set()
        waiting = [*start]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self._edges.get(node, [])
        return found

    def uses(self, *patterns: str, hot: bool = False, setup: bool = True) -> Iterator[Use]:
        """Uses of outside names in code that can be reached: of a name, or of anything under it.

        `hot` leaves out the top of the file; `setup=False` also functions that are cached, which run once.
        """
        for use in self._reader.uses:
            if matches(use.name, patterns) and self.lives(use, hot, setup):
                yield use

    def lives(self, use: Use, hot: bool = False, setup: bool = True) -> bool:
        if use.function is None:
            return not hot
        return use.function in (self.hot if hot else self.reachable) and (setup or not self.is_cached(use.function))

    def uses_in(self, nodes: Iterable[ast.AST]) -> list[Use]:
        """Uses inside these statements, and in the functions that they may call."""
        inside = {child for node in nodes for child in ast.walk(node)}
        called = self.reached(r.target for r in self._reader.references if r.node in inside)
        return [use for use in self._reader.uses if use.node in inside or use.function in called]

    def imports(self) -> list[Use]:
        return [use for use in self._reader.imports if self.lives(use)]

    def escapes(self) -> list[Use]:
        """Modules handed to where names are not followed."""
        return [use for use in self._reader.escapes if self.lives(use)]

    def launches(self) -> list[Use]:
        """Calls of the form `kernel[grid](...)` of kernels from outside the file, or of unknown ones."""
        return [use for use in self._reader.launches if self.lives(use, hot=True)]

    def tries(self) -> list[ast.Try | ast.TryStar]:
        return [node for node, function in self._reader.tries if function in self.reachable]

    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Those that what is judged may call, in the order of the file."""
        found = [f for f in self.hot if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)]
        return sorted(found, key=lambda f: f.lineno)

    def kernels(self) -> list[Definition]:
        """Triton's, wherever they are."""
        wrapped = [use for use in self._reader.uses if matches(use.name, ("triton.*jit", "triton.jit")) and use.call]
        passed = [v for use in wrapped if use.call for arg in use.call.args for v in self.values(arg, use.scope)]
        marked = [f for f, names in self._reader.decorators.items() if any(_is_jit(name) for name in names)]
        return [*marked, *(v.node for v in passed if isinstance(v, Local))]

    def is_cached(self, function: Function) -> bool:
        return bool(self._reader.decorators.get(function, set()) & _CACHES)

    def calls_of(self, function: Definition) -> list[Reference]:
        found = [r for r in self._reader.references if r.target is function and r.call]
        return [r for r in found if r.origin is None or r.origin in self.reachable]

    def values(self, node: ast.expr, scope: Scope) -> list[Value]:
        return self.names.values(node, scope)

    def constants(self, node: ast.expr, scope: Scope) -> list[object]:
        return [v.value for v in self.values(node, scope) if isinstance(v, Folded)]

    def scope_of(self, function: ast.AST) -> Scope:
        return self.names.scopes[function]

    def expressions(self, node: ast.expr, scope: Scope) -> Iterator[ast.AST]:
        """The expression, and those that its local names are bound to."""
        seen: set[ast.AST] = set()
        waiting: list[ast.AST] = [node]
        while waiting:
            part = waiting.pop()
            if part not in seen:
                seen.add(part)
                yield part
                waiting += ast.iter_child_nodes(part)
                bound = scope.bindings.get(part.id, []) if isinstance(part, ast.Name) else []
                waiting += [b.expr for b in bound if isinstance(b, Assigned)]

    def arguments(self, use: Use) -> list[object]:
        """Constants that a call of it gets by position."""
        return [value for arg in use.call.args for value in self.constants(arg, use.scope)] if use.call else []

    @cached_property
    def sources(self) -> list[Source]:
        """Calls that compile C++ or CUDA, and what they compile."""
        calls = [use for use in self.uses(*_TAKE_SOURCES) if use.call and "()" not in use.name]
        return [Source(use, *texts_of(use.call, use.scope, self.names)) for use in calls if use.call]

    def identifiers(self, *patterns: str) -> Iterator[Hit]:
        """Identifiers of C++ and CUDA sources."""
        for identifier, line in self._identifiers:
            if _any_of(patterns, "").fullmatch(identifier.name):
                yield Hit(line, identifier.name.lstrip("."))

    @cached_property
    def _identifiers(self) -> list[tuple[Identifier, int]]:
        return [found for source in self.sources for text in source.texts for found in text.identifiers()]


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of the patterns', or under one of them: an attribute, an item, what a call returns."""
    return _any_of(tuple(patterns), r"(?:[.(\[].*)?").fullmatch(name) is not None


@cache
def _any_of(patterns: tuple[str, ...], end: str) -> re.Pattern[str]:
    parts = [re.sub(r"\\[Zz]$", "", translate(pattern)) for pattern in patterns]
    return re.compile(f"(?:{'|'.join(parts)}){end}")


def _is_jit(name: str) -> bool:
    return name.startswith("triton.") and name.endswith("jit")


def _parsed(text: str, line: int) -> list[ast.stmt]:
    try:
        with warnings.catch_warnings(action="ignore"):
            body = ast.parse(text).body
    except (SyntaxError, ValueError):
        # It will not run either.
        return []
    for statement in body:
        for node in ast.walk(statement):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
    return body
