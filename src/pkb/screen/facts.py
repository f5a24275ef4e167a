"""The facts about a file that the rules look at, as far as they show without running it."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from fnmatch import translate
from functools import cache, cached_property
from typing import NamedTuple

from pkb.backends import Backend, list_compilers, list_kernel_decorators
from pkb.screen.c_source import Identifier
from pkb.screen.compiled_sources import Text, find_texts
from pkb.screen.names import Names
from pkb.screen.reader import RUNNERS, LocalUse, Reader, Use
from pkb.screen.scopes import Assigned, Definition, Function, Scope
from pkb.screen.values import Literal, Local, Value

ENTRIES = ("solution", "ModelNew")
"""The names that a candidate's file may define for the judge: a function, or a model."""
_DEEPEST_TEXT = 4
_MOST_TEXT = 1 << 20
_OPERATOR_MAKERS = ("torch.library", "[?].register_kernel", "[?].register_torch_dispatch")
_CACHES = {"functools.cache", "functools.lru_cache"}
_OTHER_COMPILERS = ("pkb.cuda_lib.*", "torch.utils.cpp_extension.load")
"""Functions that compile a source, or take one in another way than the backends' compilers."""


class Hit(NamedTuple):
    """A place that a rule objects to, and the name of the thing found there."""

    line: int
    what: str


class Source(NamedTuple):
    """A C++ or CUDA source that the file compiles."""

    use: Use
    """The call that compiles the source."""
    texts: list[Text]
    """The strings of the file that the source is made of."""
    is_whole: bool
    """Whether the source is these strings and nothing else."""

    @property
    def code(self) -> list[Text]:
        """The texts that are more than names and flags."""
        return [text for text in self.texts if "(" in text.value]


class Facts:
    def __init__(self, tree: ast.Module, backend: Backend):
        self.backend = backend
        self.unread = self._read(tree)
        """Places that run code which cannot be read here."""
        self._edges: dict[Definition | None, list[Definition]] = {}
        for use in self._reader.local_uses:
            self._edges.setdefault(use.origin, []).append(use.target)
        entries = {node for name in ENTRIES for node in self._find_entry(name)}
        self.hot = self._collect_called({*entries, *self._find_operators()})
        """Functions that a judged call may call."""
        self.reachable = self.hot | self._collect_called(self._edges.get(None, []))
        """Functions that a judged call or the import of the file may call."""

    def _read(self, tree: ast.Module) -> list[Use]:
        """Read the file, and again with the literal strings that it runs; return the places that stay unread."""
        known: set[str] = set()
        for _ in range(_DEEPEST_TEXT):
            self.tree, self.names = tree, Names(tree)
            self._reader = Reader(tree, self.names)
            fresh = {text: line for text, line in self._reader.texts if text not in known}
            if not fresh:
                return self._reader.unread
            known |= {*fresh}
            if sum(map(len, known)) > _MOST_TEXT:
                break
            added = [statement for text, line in fresh.items() for statement in _parse(text, line)]
            tree = ast.Module([*tree.body, *added], [])
        return [use for use in self._reader.uses if is_under(use.name, RUNNERS)]

    def _find_entry(self, name: str) -> set[Definition]:
        """Return the functions and classes that the name stands for, or that its assigned expression mentions."""
        assigned = [b.expr for b in self.names.module.look_up(name) if isinstance(b, Assigned)]
        inside = {node for expr in assigned for node in ast.walk(expr)}
        mentioned = {use.target for use in self._reader.local_uses if use.node in inside}
        values = self.names.resolve(ast.Name(name, ast.Load()), self.names.module)
        return mentioned | {value.node for value in values if isinstance(value, Local)}

    def _find_operators(self) -> Iterator[Definition]:
        """Yield the functions that the file makes operators of torch: calls reach them through torch.ops."""
        for function, names in self._reader.decorators.items():
            if any(is_under(name, _OPERATOR_MAKERS) for name in names):
                yield function
        for use in self._reader.uses:
            arguments = use.call.args if use.call and is_under(use.name, _OPERATOR_MAKERS) else []
            values = [value for argument in arguments for value in self.resolve(argument, use.scope)]
            yield from (value.node for value in values if isinstance(value, Local))

    def _collect_called(self, start: Iterable[Definition]) -> set[Definition]:
        """Return `start`, and all functions and classes that they may call in turn."""
        found: set[Definition] = set()
        waiting = [*start]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self._edges.get(node, [])
        return found

    def find_uses(self, *patterns: str, hot: bool = False, setup: bool = True) -> Iterator[Use]:
        """Yield the uses of outside names, and of anything under them, in code that can be reached.

        `hot` leaves out the top of the file; `setup=False` also leaves out functions that are cached and run once.
        """
        for use in self._reader.uses:
            if is_under(use.name, patterns) and self.is_live(use, hot, setup):
                yield use

    def is_live(self, use: Use, hot: bool = False, setup: bool = True) -> bool:
        """Return whether a use is in code that can be reached; find_uses explains `hot` and `setup`."""
        if use.function is None:
            return not hot
        return use.function in (self.hot if hot else self.reachable) and (setup or not self.is_cached(use.function))

    def find_uses_in(self, nodes: Iterable[ast.AST]) -> list[Use]:
        """Return the uses inside these statements, and in the functions that they may call."""
        inside = {child for node in nodes for child in ast.walk(node)}
        called = self._collect_called(use.target for use in self._reader.local_uses if use.node in inside)
        return [use for use in self._reader.uses if use.node in inside or use.function in called]

    @property
    def imports(self) -> list[Use]:
        return [use for use in self._reader.imports if self.is_live(use)]

    @property
    def escapes(self) -> list[Use]:
        """Modules that are passed to code in which names are not followed."""
        return [use for use in self._reader.escapes if self.is_live(use)]

    @property
    def launches(self) -> list[Use]:
        """Calls of the form `kernel[grid](...)`, where the kernel is from outside the file or unknown."""
        return [use for use in self._reader.launches if self.is_live(use, hot=True)]

    @property
    def tries(self) -> list[ast.Try | ast.TryStar]:
        return [node for node, function in self._reader.tries if function in self.reachable]

    @property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Functions that a judged call may call, in the order of the file."""
        found = [f for f in self.hot if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)]
        return sorted(found, key=lambda f: f.lineno)

    @property
    def kernels(self) -> list[Definition]:
        """The functions that a backend's decorator makes kernels, reachable or not."""
        patterns = list_kernel_decorators()
        wrapped = [use for use in self._reader.uses if is_under(use.name, patterns) and use.call]
        passed = [v for use in wrapped if use.call for arg in use.call.args for v in self.resolve(arg, use.scope)]
        decorators = self._reader.decorators.items()
        marked = [f for f, names in decorators if any(is_exactly(name, patterns) for name in names)]
        return [*marked, *(value.node for value in passed if isinstance(value, Local))]

    @property
    def has_registered_kernels(self) -> bool:
        """Whether code that can be reached names a kernel, passes one to a decorator, or makes one of the unknown."""
        own, reachable = set(self.kernels), self.reachable
        made = (use for use in self.find_uses(*list_kernel_decorators()) if use.call and use.call.args)
        if any(not isinstance(value, Local) for use in made for value in self._resolve_first(use)):
            return True
        return any(
            use.target in own and use.origin not in own and (use.origin is None or use.origin in reachable)
            for use in self._reader.local_uses
        )

    def _resolve_first(self, use: Use) -> list[Value]:
        """Return what the first argument of a call may stand for."""
        return self.resolve(use.call.args[0], use.scope) if use.call else []

    def is_cached(self, function: Function) -> bool:
        return bool(self._reader.decorators.get(function, set()) & _CACHES)

    def find_calls(self, function: Definition) -> list[LocalUse]:
        """Return the calls of a function of the file in code that can be reached."""
        found = [use for use in self._reader.local_uses if use.target is function and use.call]
        return [use for use in found if use.origin is None or use.origin in self.reachable]

    def resolve(self, node: ast.expr, scope: Scope) -> list[Value]:
        """Return all values that an expression may have."""
        return self.names.resolve(node, scope)

    def find_literals(self, node: ast.expr, scope: Scope) -> list[object]:
        """Return the values that an expression may have and that are written in the file."""
        return [value.value for value in self.resolve(node, scope) if isinstance(value, Literal)]

    def find_arguments(self, use: Use) -> list[object]:
        """Return the literals that a call gets by position."""
        return [value for arg in use.call.args for value in self.find_literals(arg, use.scope)] if use.call else []

    def get_scope(self, function: ast.AST) -> Scope:
        return self.names.scopes[function]

    def walk_expressions(self, node: ast.expr, scope: Scope) -> Iterator[ast.AST]:
        """Yield the parts of an expression, and of the expressions that its local names are bound to."""
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

    @cached_property
    def sources(self) -> list[Source]:
        """The C++ and CUDA sources that the file compiles."""
        uses = self.find_uses(*list_compilers(), *_OTHER_COMPILERS)
        calls = [(use, use.call) for use in uses if use.call and "()" not in use.name]
        return [Source(use, *find_texts(call, use.scope, self.names)) for use, call in calls]

    def find_identifiers(self, *patterns: str) -> Iterator[Hit]:
        """Yield the identifiers of C++ and CUDA sources that match one of the patterns."""
        for identifier, line in self._identifiers:
            if is_exactly(identifier.name, patterns):
                yield Hit(line, identifier.name.lstrip("."))

    @cached_property
    def _identifiers(self) -> list[tuple[Identifier, int]]:
        return [found for source in self.sources for text in source.texts for found in text.read_identifiers()]


def is_under(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches a pattern, or is under one: an attribute, an item, the result of a call."""
    return _compile_patterns(tuple(patterns), r"(?:[.(\[].*)?").fullmatch(name) is not None


def is_exactly(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches a pattern as a whole, with nothing under it."""
    return _compile_patterns(tuple(patterns), "").fullmatch(name) is not None


@cache
def _compile_patterns(patterns: tuple[str, ...], end: str) -> re.Pattern[str]:
    parts = [re.sub(r"\\[Zz]$", "", translate(pattern)) for pattern in patterns]
    return re.compile(f"(?:{'|'.join(parts)}){end}")


def _parse(text: str, line: int) -> list[ast.stmt]:
    """Return the statements of a text, all on the line that runs it; none for a text that cannot run either."""
    try:
        with warnings.catch_warnings(action="ignore"):
            body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return []
    for statement in body:
        for node in ast.walk(statement):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
    return body
