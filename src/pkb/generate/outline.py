"""Outlines a library file: the signatures and contracts that a model needs to call it, without the bodies."""

import ast
import re
from pathlib import Path

_FUNCTION = re.compile(r"^( *)\S.*\)( const)?( *:.*)? \{$")
_ONE_LINE = re.compile(r"^( *\S.*\)(?: const)?) \{.*\}$")


def outline(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return outline_python(text) if path.suffix == ".py" else outline_c(text)


def outline_python(text: str) -> str:
    """Return a module's public functions, classes and constants, with their docstrings."""
    tree = ast.parse(text)
    tree.body = [_cut(node) for node in _keep_public(tree.body)]
    return ast.unparse(tree) + "\n"


def _keep_public(body: list[ast.stmt]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for node in body:
        if _is_text(node):
            # A docstring of the module, or of the constant or field before it.
            kept += [node] if not kept or not _is_text(kept[-1]) else []
        elif _is_public(node):
            kept.append(node)
    return kept


def _is_public(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return not node.name.startswith("_") and not any(ast.unparse(d) == "overload" for d in node.decorator_list)
        case ast.AnnAssign(target=ast.Name(id=name)):
            return not name.startswith("_")
        case ast.Assign(targets=[ast.Name(id=name)]):
            return not name.startswith("_")
        case ast.Assign(targets=[ast.Tuple()]):
            return True
    return False


def _cut(node: ast.stmt) -> ast.stmt:
    if isinstance(node, ast.FunctionDef):
        node.body = [node.body[0] if _is_text(node.body[0]) else ast.Expr(ast.Constant(...))]
    elif isinstance(node, ast.ClassDef):
        node.body = [_cut(inner) for inner in _keep_public(node.body)]
    return node


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def outline_c(text: str) -> str:
    """Return a header's declarations and the comments over them, without the bodies of functions."""
    kept: list[str] = []
    closing: str | None = None
    for line in text.splitlines():
        if closing is not None:
            closing = None if line == closing else closing
        elif found := _FUNCTION.match(line):
            kept.append(line.removesuffix(" {") + ";")
            closing = f"{found[1]}}}"
        elif found := _ONE_LINE.match(line):
            kept.append(found[1] + ";")
        else:
            kept.append(line)
    return "\n".join(kept).replace("__device__ __forceinline__ ", "__device__ ") + "\n"
