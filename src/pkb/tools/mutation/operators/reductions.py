"""Another reduction: mean for sum, the largest for the sum, another ReduceOp; a norm of another order."""

import ast
from collections.abc import Iterator

from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.syntax import copy_with, find_called_name, find_receiver, rename_called

_METHODS = {
    "sum": ("mean", "amax"),
    "mean": ("sum", "amax"),
    "max": ("min",),
    "min": ("max",),
    "amax": ("amin", "mean"),
    "amin": ("amax",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "argmax": ("argmin",),
    "argmin": ("argmax",),
    "any": ("all",),
    "all": ("any",),
    "cumsum": ("cumprod", "cummax"),
    "cumprod": ("cumsum",),
    "var": ("std",),
    "std": ("var",),
    "logsumexp": ("amax",),
    "prod": ("sum",),
    "floor": ("ceil", "round"),
    "ceil": ("floor", "round"),
    "round": ("floor", "ceil"),
    "log_softmax": ("softmax",),
    "softmax": ("log_softmax",),
    "rsqrt": ("sqrt",),
    "sqrt": ("rsqrt",),
    "exp": ("exp2",),
    "log": ("log2",),
    "relu": ("abs", "sigmoid"),
    "sigmoid": ("tanh",),
    "tanh": ("sigmoid",),
    "gelu": ("silu",),
    "silu": ("gelu",),
    "max_pool2d": ("avg_pool2d",),
    "ReLU": ("GELU",),
    "GELU": ("SiLU",),
    "MaxPool1d": ("AvgPool1d",),
    "MaxPool2d": ("AvgPool2d",),
    "MaxPool3d": ("AvgPool3d",),
    "AvgPool1d": ("MaxPool1d",),
    "AvgPool2d": ("MaxPool2d",),
    "AvgPool3d": ("MaxPool3d",),
    "sin": ("cos",),
    "cos": ("sin",),
}
_OPS = {"SUM": ("MAX", "MIN"), "MAX": ("SUM", "MIN"), "MIN": ("SUM", "MAX"), "AVG": ("SUM",), "PRODUCT": ("SUM",)}
_ELEMENTWISE = {
    *("sqrt", "rsqrt", "square", "abs", "exp", "log", "sigmoid", "tanh", "silu", "gelu", "relu", "softplus"),
    *("log1p", "expm1", "reciprocal", "softmax", "log_softmax", "logsigmoid", "normalize", "cumsum"),
}
"""Functions whose result has the shape of their argument."""


def mutate(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Attribute) and node.attr in _OPS and "ReduceOp" in ast.unparse(node.value):
        yield from (copy_with(node, attr=name) for name in _OPS[node.attr])
    if not isinstance(node, ast.Call):
        return
    name = find_called_name(node)
    yield from (rename_called(node, other) for other in _METHODS.get(name, ()))
    receiver = find_receiver(node)
    if name in _ELEMENTWISE and receiver is not None:
        yield receiver
    if name in ("all_reduce", "reduce", "reduce_scatter_tensor") and not any(one.arg == "op" for one in node.keywords):
        largest = ast.parse("torch.distributed.ReduceOp.MAX", mode="eval").body
        yield copy_with(node, keywords=[*node.keywords, ast.keyword("op", largest)])


OPERATOR = Operator("reductions", mutate)
