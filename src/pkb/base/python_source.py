"""Questions about a candidate's source, which is parsed and never run."""

import ast
from functools import lru_cache


@lru_cache(maxsize=16)
def parse_source(source: bytes) -> ast.Module:
    """Return the syntax tree; an empty one if the source is not Python, which a rank will find out and report."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def find_imports(source: bytes) -> set[str]:
    """Return the dotted names that a source imports: `from a import b` gives a and a.b."""
    names: set[str] = set()
    for node in ast.walk(parse_source(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return names


def find_local_names(source: bytes, module: str) -> set[str]:
    """Return the names that `module`, and anything imported from it, has in this source."""
    parent, _, last = module.rpartition(".")
    names: set[str] = set()
    for node in ast.walk(parse_source(source)):
        if isinstance(node, ast.Import):
            names.update(alias.asname or last for alias in node.names if alias.name == module)
        elif isinstance(node, ast.ImportFrom):
            wanted = [a for a in node.names if node.module == module or (node.module == parent and a.name == last)]
            names.update(alias.asname or alias.name for alias in wanted)
    return names


def find_strings(source: bytes) -> list[str]:
    nodes = ast.walk(parse_source(source))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def find_argument_free_callers(source: bytes, called: set[str]) -> list[str]:
    """Return the module-level functions without parameters between the entry and one of the names in `called`."""
    body = parse_source(source).body
    functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    uses = {node.name: _find_identifiers(node) for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    started = _find_reachable("solution", uses) | _find_reachable("ModelNew", uses)
    on_the_way = [name for name in started if called & _find_reachable(name, uses)]
    return [name for name in on_the_way if name in functions and not _count_required_parameters(functions[name])]


def _find_reachable(start: str, uses: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = uses.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def _find_identifiers(tree: ast.AST) -> set[str]:
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _count_required_parameters(function: ast.FunctionDef) -> int:
    """Return the number of parameters without a default."""
    declared = function.args
    required = len(declared.posonlyargs) + len(declared.args) - len(declared.defaults)
    return required + sum(default is None for default in declared.kw_defaults)
