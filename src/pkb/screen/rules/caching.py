"""Results that are kept from one call to the next."""

import ast
from collections.abc import Iterator

from pkb.screen.facts import Facts, Hit
from pkb.screen.functions import ENTRY_FUNCTIONS
from pkb.screen.rule import BOTH, Spot, rule
from pkb.screen.scopes import Assigned, Scope, list_parameters
from pkb.screen.values import SOME_TENSOR

_ADDRESSES = {"data_ptr", "untyped_storage", "_version", "_cdata"}
_IDENTITIES = {"id", "hash"}


@rule("cache by shape, dtype and device only: addresses come back with other values", warn=BOTH)
def keys_by_address(facts: Facts) -> Iterator[Spot]:
    """looks something up by a tensor's address or identity"""
    for function in facts.functions:
        scope = facts.get_scope(function)
        for container, key in _find_look_ups(function):
            if any(_is_address(part) for part in facts.walk_expressions(key, scope)):
                yield Hit(key.lineno, ast.unparse(container))


def _find_look_ups(function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in ast.walk(function):
        match node:
            case ast.Subscript() if not isinstance(node.slice, ast.Slice):
                yield node.value, node.slice
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[container]):
                yield container, key
            case ast.Call(func=ast.Attribute(value=container, attr="get" | "setdefault" | "pop"), args=[key, *_]):
                yield container, key


def _is_address(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return name in _ADDRESSES
        case ast.Call(func=ast.Name(id=name), args=[_]):
            return name in _IDENTITIES
    return False


@rule("cache what depends on shapes; compute what depends on values in every call", warn=BOTH)
def caches_tensors(facts: Facts) -> Iterator[Spot]:
    """remembers its result for a tensor"""
    for function in facts.functions:
        for use in facts.find_calls(function) if facts.is_cached(function) else []:
            call, scope = use.call, use.scope
            if call and scope and any(SOME_TENSOR in facts.resolve(arg, scope) for arg in call.args):
                yield Hit(call.lineno, function.name)


@rule("return memory of this call, computed in this call", warn=BOTH)
def returns_kept_results(facts: Facts) -> Iterator[Spot]:
    """outlives the call and is returned"""
    for function in facts.functions:
        if function.name in ENTRY_FUNCTIONS:
            scope = facts.get_scope(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value and (kept := _find_kept(node.value, scope)):
                    yield Hit(node.lineno, kept)


def _find_kept(node: ast.expr, scope: Scope, depth: int = 4) -> str | None:
    """Return the name of the file's own variable that an expression takes its value from, if there is one."""
    match node:
        case ast.Subscript(value=inner) | ast.Attribute(value=inner):
            return _find_kept(inner, scope, depth)
        case ast.Call(func=ast.Attribute(value=container, attr="get" | "setdefault" | "pop")):
            return _find_kept(container, scope, depth)
        case ast.Name(id=name):
            bound = [b for b in scope.look_up(name) if isinstance(b, Assigned)]
            if scope.find_owner(name) is scope.module:
                return name if bound else None
            inner_kept = [_find_kept(b.expr, scope, depth - 1) for b in bound if depth]
            return next(filter(None, inner_kept), None)
    return None


@rule("keep buffers under a cache that is keyed by shape", warn=BOTH)
def keeps_state_in_functions(facts: Facts) -> Iterator[Spot]:
    """keeps values from one call to the next"""
    for function in facts.functions:
        for name, default in list_parameters(function):
            if isinstance(default, ast.Dict | ast.List | ast.Set):
                yield Hit(default.lineno, f"the default of {name}")
    own = {function.name for function in facts.functions}
    for function in facts.functions:
        for node in ast.walk(function):
            match node:
                case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store()) if name in own:
                    yield Hit(node.lineno, ast.unparse(node))
