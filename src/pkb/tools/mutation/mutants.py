"""Derive mutants: the reference's source with one change, each of them once."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from pkb.problems.problem import Problem
from pkb.tools.mutation.change import Mutation, Operator
from pkb.tools.mutation.operators import list_operators

_SHOWN = 72
"""The most characters of the expression around a change that a key shows."""
_UNSHOWN_FIELDS = {"annotation", "returns", "decorator_list", "bases"}
_HIDDEN_FUNCTIONS = ("get_inputs", "get_init_inputs")
"""Functions of a model's file that the judge does not take from a candidate."""


@dataclass(frozen=True)
class Mutant:
    operator: Operator
    key: str
    """The function and what was changed in it: `filtered: x.sum(dim=1) -> x.sum(dim=0)`. A problem declares a mutant
    equivalent by this key."""
    source: str
    """A candidate's file."""


@dataclass(frozen=True)
class _Place:
    """A node, and where in its parent it stands."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    around: tuple[ast.AST, ...]
    """Its ancestors within the function, the nearest last."""

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


@lru_cache(maxsize=4)
def derive_mutants(problem: Problem) -> tuple[Mutant, ...]:
    """Return all mutants of a problem's reference, without those that compile to the same code as an earlier one."""
    text = problem.path.read_text()
    operators = tuple(operator for operator in list_operators() if operator.needs in text)
    return tuple(derive_from_source(problem.make_candidate_source(), problem.entry, not problem.builds, operators))


def derive_from_source(
    source: str,
    entry: str = "solution",
    constants: bool = True,
    operators: tuple[Operator, ...] | None = None,
) -> list[Mutant]:
    """Return all mutants of a candidate's file; `constants` says whether those of the module are changed as well."""
    tree = ast.parse(source)
    known = {fingerprint(source), fingerprint(ast.unparse(tree))}
    counts: Counter[str] = Counter()
    mutants = []
    for place in _list_places(tree, entry, constants):
        for operator, key, text in _apply(tree, place, operators or list_operators()):
            code = fingerprint(text)
            if code is not None and code not in known:
                known.add(code)
                counts[key] += 1
                mutants.append(Mutant(operator, key if counts[key] == 1 else f"{key} #{counts[key]}", text))
    return mutants


def _apply(tree: ast.Module, place: _Place, operators: tuple[Operator, ...]) -> Iterator[tuple[Operator, str, str]]:
    """Yield the operator, key and source of every change at one place; the tree is as before in between."""
    for operator in operators:
        for found in operator.mutate(place.node):
            change = found if isinstance(found, Mutation) else Mutation(found)
            around = _choose_shown(place)
            before = ast.unparse(around)
            try:
                place.put(change.replacement)
                after = ast.unparse(change.replacement if around is place.node else around)
                text = change.text or f"{_clip(before)} -> {_clip(after)}"
                source = ast.unparse(ast.fix_missing_locations(tree))
            except (TypeError, ValueError, AttributeError):
                # A change that cannot be written down is no program.
                continue
            finally:
                place.put(place.node)
            yield operator, f"{_name_function(place)}: {text}", source


def _choose_shown(place: _Place) -> ast.AST:
    """Return the largest expression or simple statement around a node that is short enough to be shown."""
    chosen = place.node
    for node in reversed(place.around):
        if not isinstance(
            node, ast.expr | ast.keyword | ast.Slice | ast.Assign | ast.AugAssign | ast.Return | ast.Expr
        ):
            break
        if len(ast.unparse(node)) > _SHOWN:
            break
        # The `x.sum` of `x.sum(1)` says less than the whole call.
        chosen = chosen if isinstance(node, ast.Attribute) else node
    return chosen


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 2 * _SHOWN else f"{line[:_SHOWN]} ... {line[-_SHOWN // 2 :]}"


def _name_function(place: _Place) -> str:
    names = [node.name for node in (*place.around, place.node) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return ".".join(names) or "module"


def _list_places(tree: ast.Module, entry: str, constants: bool) -> Iterator[_Place]:
    for index, statement in enumerate(tree.body):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            if statement.name not in _HIDDEN_FUNCTIONS:
                yield from _walk(_Place(statement, tree, "body", index, ()), entry)
        elif constants and isinstance(statement, ast.Assign | ast.AnnAssign):
            yield from _walk(_Place(statement, tree, "body", index, ()), entry)


def _walk(place: _Place, entry: str) -> Iterator[_Place]:
    """Yield a place and all below it, except what no judged call reaches: annotations, refusals, one-rank shortcuts."""
    node = place.node
    if _is_refusal(node) or _is_text(node):
        return
    is_decided = isinstance(node, ast.If) and _is_decided(node)
    if not is_decided:
        yield place
    for name, value in ast.iter_fields(node):
        if is_decided and name == "test":
            continue
        if isinstance(node, ast.If) and name == "body" and _is_for_one_rank(node):
            continue
        if name in _UNSHOWN_FIELDS or (isinstance(node, ast.FunctionDef) and name == "args" and node.name == entry):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(child, ast.AST):
                yield from _walk(_Place(child, node, name, index, (*place.around, node)), entry)


def _is_refusal(node: ast.AST) -> bool:
    """Whether a node only refuses arguments that no call has: a check that raises, or `strict=True` of zip."""
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    if isinstance(node, ast.If):
        return all(isinstance(one, ast.Raise) for one in node.body) and not node.orelse
    return isinstance(node, ast.Raise | ast.Assert)


def _is_decided(node: ast.If) -> bool:
    """Whether every judged call takes the same branch: it has peers."""
    return _is_for_one_rank(node) or ast.unparse(node.test).endswith("is_initialized()")


def _is_for_one_rank(node: ast.If) -> bool:
    """Whether a branch is a shortcut for one rank, or for a process without peers, which no judged call takes."""
    match node.test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=1)]):
            return "world" in ast.unparse(left)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return "is_initialized" in ast.unparse(operand)
    return False


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def fingerprint(source: str) -> str | None:
    """Return the code that a source compiles to, without places in the file; None where it does not compile."""
    try:
        return repr(_strip(compile(source, "mutant", "exec", optimize=2)))
    except (SyntaxError, ValueError):
        return None


def _strip(code: CodeType) -> Any:
    inner = tuple(
        _strip(one) if isinstance(one, CodeType) else (type(one).__name__, repr(one)) for one in code.co_consts
    )
    return code.co_name, code.co_code, inner, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
