"""The calls that a file makes of its own functions, and the arguments that it passes to them."""

import ast

from pkb.screen.scopes import Function, Scope, list_parameters

Calls = dict[str, list[tuple[ast.Call, Scope]]]
ENTRY_FUNCTIONS = ("solution", "forward")
"""The functions that the judge calls with tensors: the solution itself, or a model's method."""


def find_calls_by_name(tree: ast.Module, scopes: dict[ast.AST, Scope]) -> Calls:
    """Return all calls of the form `name(...)` under their names, each with the scope that it stands in."""
    found: Calls = {}
    waiting: list[tuple[ast.AST, Scope]] = [(tree, scopes[tree])]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.setdefault(node.func.id, []).append((node, scope))
        waiting += [(child, scopes.get(child, scope)) for child in ast.iter_child_nodes(node)]
    return found


def find_argument(parameter: str, function: Function, call: ast.Call) -> ast.expr | None:
    """Return the expression that a call passes for a parameter, or None where the syntax does not show it."""
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    position = [name for name, _ in list_parameters(function)].index(parameter)
    if position < min(len(call.args), len(function.args.posonlyargs + function.args.args)):
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg == parameter), None)


def may_be_tensor(parameter: str, function: Function) -> bool:
    """Return whether a parameter may hold a tensor: it is not `self`, and its annotation names no other type."""
    if parameter == "self":
        return False
    found = (arg.annotation for arg in ast.walk(function.args) if isinstance(arg, ast.arg) and arg.arg == parameter)
    annotation = next(found)
    return annotation is None or "Tensor" in ast.unparse(annotation)
