"""A cast is removed. Where the inputs have the cast's dtype already, that changes nothing."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import copy_with, find_called_name, find_receiver

_CASTS = {"float", "double", "half", "bfloat16", "long", "int", "type_as", "type", "to"}


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Attribute) and find_called_name(node) in _CASTS:
        receiver = find_receiver(node)
        if receiver is not None:
            yield receiver
    if any(one.arg == "dtype" for one in node.keywords):
        yield copy_with(node, keywords=[one for one in node.keywords if one.arg != "dtype"])


OPERATOR = Operator("casts", mutate, no_effect_in="float32")
