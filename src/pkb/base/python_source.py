"""What a candidate's source says, comments aside. It is parsed, never run."""

import ast
from functools import lru_cache


@lru_cache(maxsize=16)
def parsed(source: bytes) -> ast.Module:
    """Its syntax tree; an empty one when it is no Python, which a rank will find out and report."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def imported(source: bytes) -> set[str]:
    """Dotted names that it imports: `from a import b` gives a and a.b."""
    names: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return names


def local_names(source: bytes, module: str) -> set[str]:
    """What `module`, and anything imported from it, is called in this source."""
    parent, _, last = module.rpartition(".")
    names: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            names.update(alias.asname or last for alias in node.names if alias.name == module)
        elif isinstance(node, ast.ImportFrom):
            wanted = [a for a in node.names if node.module == module or (node.module == parent and a.name == last)]
            names.update(alias.asname or alias.name for alias in wanted)
    return names


def strings(source: bytes) -> list[str]:
    nodes = ast.walk(parsed(source))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def argument_free_callers(source: bytes, called: set[str]) -> list[str]:
    """Module-level functions without parameters on the way from what is judged to one of the names in `called`."""
    body = parsed(source).body
    functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    uses = {node.name: _identifiers(node) for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    started = _reached("solution", uses) | _reached("ModelNew", uses)
    on_the_way = [name for name in started if called & _reached(name, uses)]
    return [name for name in on_the_way if name in functions and not _parameters(functions[name])]


def _reached(start: str, uses: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = uses.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def _identifiers(tree: ast.AST) -> set[str]:
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _parameters(function: ast.FunctionDef) -> int:
    """How many arguments a call must give."""
    given = function.args
    required = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    return required + sum(default is None for default in given.kw_defaults)
