"""What names stand for: aliases followed, constants folded, every binding of a name considered.

Nothing is run. A name bound twice may be either; what cannot be followed is UNKNOWN, and stays visible as such.
"""

import ast
import builtins
from collections.abc import Iterable

from pkb.screen import folding
from pkb.screen.constants import Constants
from pkb.screen.fixpoint import Circles
from pkb.screen.functions import CALLED, argument_for, calls_by_name, may_be_tensor, returned_by
from pkb.screen.scopes import Assigned, Binding, Defined, Imported, Parameter, Scope, scopes_of
from pkb.screen.torch_names import TENSOR, UNKNOWN_NAME, joined, returned
from pkb.screen.values import SOME_TENSOR, UNKNOWN, Dotted, Folded, Local, Method, Value, distinct, elements, text

OWN_NAME = "candidate"
"""The module that a rank imports a candidate as."""
Key = tuple[ast.expr | str, Scope]
"""An expression, or a variable by its name, and where it is evaluated."""


class Names:
    def __init__(self, tree: ast.Module):
        self.scopes = scopes_of(tree)
        self.module = self.scopes[tree]
        self._calls = calls_by_name(tree, self.scopes)
        self._constants = Constants(self.values)
        self._circles = Circles(self._work_out, UNKNOWN)

    def values(self, node: ast.expr, scope: Scope) -> list[Value]:
        """All that the expression may stand for."""
        # A variable is the same wherever it is mentioned.
        return self._name(node.id, scope) if isinstance(node, ast.Name) else self._circles.solve((node, scope))

    def _name(self, name: str, scope: Scope) -> list[Value]:
        return self._circles.solve((name, scope.owner(name) or scope))

    def _work_out(self, key: Key) -> list[Value]:
        asked, scope = key
        return distinct(self._variable(asked, scope) if isinstance(asked, str) else self._expression(asked, scope))

    def _expression(self, node: ast.expr, scope: Scope) -> Iterable[Value]:
        match node:
            case ast.Constant():
                return [Folded(node.value)]
            case ast.Attribute():
                return [v for base in self.values(node.value, scope) for v in self._attribute(base, node.attr)]
            case ast.Call():
                return [v for function in self.values(node.func, scope) for v in self._call(function, node, scope)]
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.IfExp():
                return [*self.values(node.body, scope), *self.values(node.orelse, scope)]
            case ast.BoolOp():
                return [v for part in node.values for v in self.values(part, scope)]
            case ast.NamedExpr() | ast.Await() | ast.Starred():
                return self.values(node.value, scope)
            case ast.Lambda():
                return [Local(node)]
        return self._constants.expression(node, scope)

    def _variable(self, name: str, scope: Scope) -> list[Value]:
        if bindings := scope.lookup(name):
            return [v for binding in bindings for v in self._bound(binding)]
        if name == "__name__":
            return [Folded(OWN_NAME)]
        if name == "__builtins__":
            return [Dotted("builtins")]
        if hasattr(builtins, name):
            return [Dotted(f"builtins.{name}")]
        return [Dotted(f"{star}.{name}") for star in scope.every_star()] or [UNKNOWN]

    def _bound(self, binding: Binding) -> Iterable[Value]:
        match binding:
            case Imported():
                return [Dotted(joined(binding.name))]
            case Defined():
                return [Local(binding.node)]
            case Assigned(element=True):
                return [e for v in self.values(binding.expr, binding.scope) for e in elements(v)]
            case Assigned():
                return self.values(binding.expr, binding.scope)
            case Parameter():
                return self._passed(binding)
        return [UNKNOWN]

    def _passed(self, parameter: Parameter) -> list[Value]:
        """The default, what calls of the function by its name pass, and whatever others may."""
        function, name = parameter.function, getattr(parameter.function, "name", "")
        found: list[Value] = [UNKNOWN]
        if name in CALLED and may_be_tensor(parameter.name, function):
            found.append(SOME_TENSOR)
        if parameter.default:
            found += self.values(parameter.default, parameter.scope)
        for call, scope in self._calls.get(name, []):
            if argument := argument_for(parameter.name, function, call):
                found += self.values(argument, scope)
        return found

    def _attribute(self, base: Value, name: str) -> Iterable[Value]:
        unknown = Dotted(f"{UNKNOWN_NAME}.{name}")
        match base:
            case Dotted(name=owner) if owner == OWN_NAME:
                return self._name(name, self.module)
            case Dotted(name=owner):
                return [Dotted(joined(owner, name))]
            case Folded(value=value):
                return [Method(value, name)]
            case Local(node=ast.ClassDef() as node):
                inside = self.scopes[node].bindings.get(name, [])
                return [v for binding in inside for v in self._bound(binding)] or [unknown]
        return [unknown]

    def _call(self, function: Value, call: ast.Call, scope: Scope) -> Iterable[Value]:
        match function:
            case Local(node=ast.Lambda() as node):
                return self.values(node.body, self.scopes[node])
            case Local(node=ast.FunctionDef() as node):
                return [v for value in returned_by(node) for v in self.values(value, self.scopes[node])]
            case Method(value=value, name=name):
                return self._constants.fold(call.args, scope, lambda args: folding.method(value, name, args))
            case Dotted(name=name):
                return self._look_up(name, call, scope) or self._call_outside(name, call, scope)
        return [UNKNOWN]

    def _call_outside(self, name: str, call: ast.Call, scope: Scope) -> Iterable[Value]:
        args = call.args
        if name == "builtins.type" and len(args) == 1:
            made = [v.name for v in self.values(args[0], scope) if isinstance(v, Dotted)]
            return [Dotted(name.removesuffix("()")) for name in made] or [UNKNOWN]
        if name == "functools.partial" and args:
            return self.values(args[0], scope)
        if name == "builtins.map" and len(args) == 2:
            return self._constants.map(args[0], args[1], scope)
        if name in folding.FUNCTIONS and not call.keywords:
            return self._constants.fold(args, scope, lambda values: folding.call(name, values))
        return [Dotted(returned(name))]

    def _look_up(self, name: str, call: ast.Call, scope: Scope) -> list[Value]:
        """What a function finds that is given a name; nothing for other functions."""
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        named = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
        match name.rpartition(".")[2], call.args or named:
            case "getattr", [base, asked, *_]:
                return self._named(base, asked, scope)
            case "vars", [base]:
                return self._named(base, ast.Constant("__dict__"), scope)
            case "__getattribute__" | "__getattr__", [asked] if owner:
                return self._named(owner[0], asked, scope)
            case "get" | "__getitem__", [asked, *_] if owner:
                return self._item(owner[0], asked, scope)
            case "import_module", [asked, *_]:
                return self._module(asked, scope)
            case "__import__", [asked, *rest]:
                whole = len(rest) > 2 or any(keyword.arg == "fromlist" for keyword in call.keywords)
                return self._module(asked, scope, whole)
        return []

    def _named(self, base: ast.expr, name: ast.expr, scope: Scope) -> list[Value]:
        """An attribute whose name is an expression."""
        found: list[Value] = []
        for asked in map(text, self.values(name, scope)):
            owners = self.values(base, scope) if asked is not None else []
            found += [v for owner in owners for v in self._attribute(owner, str(asked))] or [UNKNOWN]
        return found

    def _module(self, name: ast.expr, scope: Scope, whole: bool = True) -> list[Value]:
        asked = map(text, self.values(name, scope))
        return [UNKNOWN if one is None else Dotted(joined(one if whole else one.split(".")[0])) for one in asked]

    def _subscript(self, node: ast.Subscript, scope: Scope) -> list[Value]:
        if not isinstance(node.slice, ast.Slice):
            return self._item(node.value, node.slice, scope)
        bounds = [bound or ast.Constant(None) for bound in (node.slice.lower, node.slice.upper, node.slice.step)]
        if SOME_TENSOR in self.values(node.value, scope):
            return [SOME_TENSOR]
        return self._constants.fold([node.value, *bounds], scope, lambda a: folding.subscript(a[0], slice(*a[1:])))

    def _item(self, base: ast.expr, index: ast.expr, scope: Scope) -> list[Value]:
        return [v for container in self.values(base, scope) for v in self._items(container, index, scope)]

    def _items(self, container: Value, index: ast.expr, scope: Scope) -> Iterable[Value]:
        match container:
            case Dotted(name="sys.modules"):
                return self._module(index, scope)
            case Dotted(name="builtins.globals()" | "builtins.locals()" | "builtins.vars()"):
                asked = map(text, self.values(index, scope))
                return [v for one in asked for v in ([UNKNOWN] if one is None else self._name(one, self.module))]
            case Dotted(name=name) if name == "builtins" or name.endswith(".__dict__"):
                owner = Dotted(name.removesuffix(".__dict__"))
                asked = map(text, self.values(index, scope))
                return [v for one in asked for v in ([UNKNOWN] if one is None else self._attribute(owner, one))]
            case Dotted(name=name):
                return [container if name in (TENSOR, UNKNOWN_NAME) else Dotted(f"{name}[]")]
            case Folded(value=value):
                return self._constants.fold([index], scope, lambda args: folding.subscript(value, args[0]))
        return [UNKNOWN]
