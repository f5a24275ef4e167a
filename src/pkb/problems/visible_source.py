"""Extract the part of a problem file that a language model sees: `solution`, and all that it uses."""

import ast
import symtable
from collections.abc import Iterable


def extract_visible_source(text: str, shown: Iterable[str] = ("solution",)) -> str:
    """Return the docstring, the definitions of these names, and the imports, constants and helpers that they use."""
    tree = ast.parse(text)
    needed = find_statements(tree, text, shown)
    kept = [node for node in tree.body if node in needed or _is_docstring(node, tree)]
    lines = text.splitlines()
    pieces = [_cut_with_comments(node, lines) for node in kept]
    return _join(pieces, kept)


def find_statements(tree: ast.Module, text: str, names: Iterable[str]) -> list[ast.stmt]:
    """Return the module's statements that define these names or are used, directly or not, by those that do."""
    defined = {name: node for node in tree.body for name in _list_definitions(node)}
    scopes = {table.get_name(): table for table in symtable.symtable(text, "problem", "exec").get_children()}
    needed = _find_reachable(names, defined, scopes)
    return [node for node in tree.body if node in needed]


def _list_definitions(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
        case ast.Assign():
            return [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _find_reachable(
    start: Iterable[str], defined: dict[str, ast.stmt], scopes: dict[str, symtable.SymbolTable]
) -> set[ast.stmt]:
    reached: set[ast.stmt] = set()
    waiting = [*start]
    while waiting:
        node = defined.get(waiting.pop())
        if node is not None and node not in reached:
            reached.add(node)
            waiting += _list_uses(node, scopes)
    return reached


def _list_uses(node: ast.stmt, scopes: dict[str, symtable.SymbolTable]) -> list[str]:
    """Return the module's names that a statement uses, without a function's local names, which may be equal."""
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return _list_names(node)
    outside: list[ast.AST] = [*node.decorator_list]
    if isinstance(node, ast.FunctionDef):
        outside += [node.args, *([node.returns] if node.returns else [])]
    else:
        outside += [*node.bases, *node.keywords, *node.body]
    return [name for part in outside for name in _list_names(part)] + _list_globals(scopes[node.name])


def _list_names(node: ast.AST) -> list[str]:
    return [name.id for name in ast.walk(node) if isinstance(name, ast.Name)]


def _list_globals(scope: symtable.SymbolTable) -> list[str]:
    inner = [name for child in scope.get_children() for name in _list_globals(child)]
    return [symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global()] + inner


def _is_docstring(node: ast.stmt, tree: ast.Module) -> bool:
    return node is tree.body[0] and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _cut_with_comments(node: ast.stmt, lines: list[str]) -> str:
    decorators = getattr(node, "decorator_list", [])
    start = min([node.lineno, *(d.lineno for d in decorators)]) - 1
    while start > 0 and lines[start - 1].startswith("#"):
        start -= 1
    return "\n".join(lines[start : node.end_lineno])


def _join(pieces: list[str], nodes: list[ast.stmt]) -> str:
    text = ""
    for piece, node, after in zip(pieces, nodes, [*nodes[1:], None], strict=True):
        text += piece + "\n" * _count_newlines(node, after)
    return text


def _count_newlines(node: ast.stmt, after: ast.stmt | None) -> int:
    if after is None:
        return 1
    if any(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in (node, after)):
        return 3
    return 1 if isinstance(node, ast.Import | ast.ImportFrom) == isinstance(after, ast.Import | ast.ImportFrom) else 2
