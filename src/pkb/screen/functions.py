"""Functions of a file as its syntax shows them: who calls them, with what, and what they return."""

import ast

from pkb.screen.scopes import Comprehension, Definition, Function, Scope, parameters

Calls = dict[str, list[tuple[ast.Call, Scope]]]
CALLED = ("solution", "forward")
"""What the judge calls with tensors: a function, or a model's method."""


def calls_by_name(tree: ast.Module, scopes: dict[ast.AST, Scope]) -> Calls:
    """Calls of the form `name(...)`, and where they are."""
    found: Calls = {}
    waiting: list[tuple[ast.AST, Scope]] = [(tree, scopes[tree])]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.setdefault(node.func.id, []).append((node, scope))
        waiting += [(child, scopes.get(child, scope)) for child in ast.iter_child_nodes(node)]
    return found


def argument_for(parameter: str, function: Function, call: ast.Call) -> ast.expr | None:
    """What a call passes for a parameter, where it shows."""
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    position = [name for name, _ in parameters(function)].index(parameter)
    if position < min(len(call.args), len(function.args.posonlyargs + function.args.args)):
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg == parameter), None)


def may_be_tensor(parameter: str, function: Function) -> bool:
    """Unless its annotation says otherwise, or it is a method's owner."""
    if parameter == "self":
        return False
    found = (arg.annotation for arg in ast.walk(function.args) if isinstance(arg, ast.arg) and arg.arg == parameter)
    annotation = next(found)
    return annotation is None or "Tensor" in ast.unparse(annotation)


def returned_by(function: ast.FunctionDef) -> list[ast.expr]:
    found: list[ast.expr] = []
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value:
            found.append(node.value)
        if not isinstance(node, Definition | Comprehension):
            waiting += ast.iter_child_nodes(node)
    return found
