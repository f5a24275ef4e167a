"""What the names of a file stand for: imports and aliases are followed, and literal strings are joined.

Nothing is run, and nothing is decoded. A name that is bound twice may be either; what cannot be followed is UNKNOWN.
"""

import ast
import builtins
from collections.abc import Iterable
from itertools import islice, product

from pkb.screen.functions import ENTRY_FUNCTIONS, find_argument, find_calls_by_name, may_be_tensor
from pkb.screen.scopes import (
    RETURN,
    Assigned,
    Binding,
    Defined,
    Definition,
    Function,
    Imported,
    Parameter,
    Scope,
    collect_scopes,
)
from pkb.screen.torch_names import TENSOR, UNKNOWN_NAME, join_names, name_result
from pkb.screen.values import MOST_VALUES, SOME_TENSOR, UNKNOWN, Dotted, Literal, Local, Value, limit_values, read_text

OWN_NAME = "candidate"
"""The name of the module that a rank imports a candidate as."""
COMPUTED_MODULE = f"sys.modules.{UNKNOWN_NAME}"
"""The module that an import by a computed name returns."""
Variable = tuple[Scope, str]
"""A name, and the scope that binds it."""
_MOST_MENTIONED = 64
_ROUNDS = 4
_MOST_JOINED = 1 << 24
"""Characters of all joined strings together; a string beyond them is unknown."""


class Names:
    """The values of all variables of a file, and of every expression in it."""

    def __init__(self, tree: ast.Module):
        self.scopes = collect_scopes(tree)
        self.module = self.scopes[tree]
        self._calls = find_calls_by_name(tree, self.scopes)
        self._joined = 0
        self._expressions: dict[tuple[ast.expr, Scope], list[Value]] = {}
        self._variables: dict[Variable, list[Value]] = {}
        self._mentions: dict[Variable, tuple[list[Definition], list[Variable]]] = {}
        self._mentioned: dict[Variable, list[Definition]] = {}
        self._registered = self._find_registered()
        """Functions and classes by the variables of the file that their decorators begin with."""
        self._resolve_variables()

    def resolve(self, node: ast.expr, scope: Scope) -> list[Value]:
        """Return all values that an expression may have."""
        key = node, scope
        if key not in self._expressions:
            self._expressions[key] = limit_values(self._evaluate(node, scope))
        return self._expressions[key]

    def find_mentioned(self, owner: Scope, name: str) -> list[Definition]:
        """Return the functions and classes that may be taken out of a variable: its expressions name them.

        The variables that those expressions name are followed in turn. Of very many, some are left out.
        """
        if (owner, name) not in self._mentioned:
            found = [d for variable in self._follow_mentions((owner, name)) for d in self._list_mentions(*variable)[0]]
            self._mentioned[owner, name] = list(dict.fromkeys(found))[:_MOST_MENTIONED]
        return self._mentioned[owner, name]

    def _find_registered(self) -> dict[Variable, list[Definition]]:
        found: dict[Variable, list[Definition]] = {}
        for node, scope in self.scopes.items():
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for name in filter(None, map(_find_root, node.decorator_list)):
                owner = scope.parent.find_owner(name) if scope.parent else None
                if owner and not all(isinstance(binding, Imported) for binding in owner.bindings[name]):
                    found.setdefault((owner, name), []).append(node)
        return found

    def _follow_mentions(self, start: Variable) -> list[Variable]:
        """Return a variable, and those that its expressions name, and so on."""
        found = {start: None}
        for variable in (waiting := [start]):
            fresh = [one for one in self._list_mentions(*variable)[1] if one not in found][:_MOST_MENTIONED]
            if len(found) < _MOST_MENTIONED:
                found |= dict.fromkeys(fresh)
                waiting += fresh
        return [*found]

    def _list_mentions(self, scope: Scope, name: str) -> tuple[list[Definition], list[Variable]]:
        """Return what the expressions bound to a variable name: functions and classes, and variables."""
        if (scope, name) not in self._mentions:
            bound = [b for b in scope.bindings[name] if isinstance(b, Assigned)]
            parts = [(part, b.scope) for b in bound for part in ast.walk(b.expr) if isinstance(part, ast.Name)]
            values = [value for part, where in parts for value in self.resolve(part, where)]
            owners = [(where.find_owner(part.id), part.id) for part, where in parts]
            definitions = [value.node for value in values if isinstance(value, Local)]
            definitions += self._registered.get((scope, name), [])
            self._mentions[scope, name] = definitions, [(owner, name) for owner, name in owners if owner]
        return self._mentions[scope, name]

    def _resolve_variables(self) -> None:
        """Work the variables out in turn, each from what is known of the others, until nothing changes."""
        variables = [(scope, name) for scope in self.scopes.values() for name in scope.bindings]
        for _ in range(_ROUNDS):
            growing = {variable for variable in variables if self._update(*variable)}
            if not growing:
                break
            # Forwards, then backwards: a chain of aliases is followed to its end in whichever order it is written.
            variables.reverse()
        for variable, values in self._variables.items():
            if variable in growing or not values:
                values.append(UNKNOWN)
        self._expressions.clear()

    def _update(self, scope: Scope, name: str) -> bool:
        """Work a variable out again, and return whether its values have changed."""
        self._expressions.clear()
        before = self._variables.get((scope, name))
        values = limit_values(value for binding in scope.bindings[name] for value in self._follow(binding))
        self._variables[scope, name] = values
        return values != before

    def _evaluate(self, node: ast.expr, scope: Scope) -> Iterable[Value]:
        match node:
            case ast.Constant():
                return [Literal(node.value)]
            case ast.Name():
                return self._resolve_name(node.id, scope)
            case ast.Attribute():
                return self._get_attributes(self.resolve(node.value, scope), node.attr)
            case ast.Call():
                return [v for function in self.resolve(node.func, scope) for v in self._call(function, node, scope)]
            case ast.Subscript():
                return self._get_items(self.resolve(node.value, scope), node.slice, scope)
            case ast.IfExp():
                return [*self.resolve(node.body, scope), *self.resolve(node.orelse, scope)]
            case ast.BoolOp():
                return [v for part in node.values for v in self.resolve(part, scope)]
            case ast.NamedExpr() | ast.Await() | ast.Starred():
                return self.resolve(node.value, scope)
            case ast.Lambda():
                return [Local(node)]
        return self._operate(node, scope)

    def _operate(self, node: ast.expr, scope: Scope) -> Iterable[Value]:
        match node:
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]) if SOME_TENSOR in [
                *self.resolve(left, scope),
                *self.resolve(right, scope),
            ]:
                return [SOME_TENSOR]
            case ast.BinOp(op=ast.Add()):
                return self._join([node.left, node.right], scope)
            case ast.JoinedStr():
                return self._join(node.values, scope)
            case ast.FormattedValue(conversion=-1, format_spec=None):
                return self.resolve(node.value, scope)
            case ast.Compare(ops=[ast.Eq()], comparators=[right]):
                # For `if __name__ == "__main__"`, whose body is dead code in a rank.
                return self._compare(node.left, right, scope)
        return [UNKNOWN]

    def _join(self, parts: list[ast.expr], scope: Scope) -> Iterable[Value]:
        choices = product(*(self.resolve(part, scope) for part in parts))
        for chosen in islice(choices, MOST_VALUES + 1):
            texts = [text for value in chosen if (text := read_text(value)) is not None]
            self._joined += sum(map(len, texts))
            is_known = len(texts) == len(chosen) and self._joined <= _MOST_JOINED
            yield Literal("".join(texts)) if is_known else UNKNOWN

    def _compare(self, left: ast.expr, right: ast.expr, scope: Scope) -> Iterable[Value]:
        for one in self.resolve(left, scope):
            for other in self.resolve(right, scope):
                literal = isinstance(one, Literal) and isinstance(other, Literal)
                yield Literal(one == other) if literal else UNKNOWN

    def _resolve_name(self, name: str, scope: Scope) -> list[Value]:
        if owner := scope.find_owner(name):
            own = self._variables.get((owner, name), [])
            # In a class, `kernel = kernel` refers to the name outside.
            outside = isinstance(owner.node, ast.ClassDef) and owner.parent and owner.parent.find_owner(name)
            return [*own, *self._variables.get((outside, name), [])] if outside else own
        if name == "__name__":
            return [Literal(OWN_NAME)]
        if name == "__builtins__":
            return [Dotted("builtins")]
        if hasattr(builtins, name):
            return [Dotted(f"builtins.{name}")]
        return [Dotted(f"{star}.{name}") for star in scope.list_stars()] or [UNKNOWN]

    def _follow(self, binding: Binding) -> Iterable[Value]:
        match binding:
            case Imported():
                return [Dotted(join_names(binding.name))]
            case Defined():
                return [Local(binding.node)]
            case Assigned(element=True):
                return self._resolve_elements(binding.expr, binding.scope)
            case Assigned():
                return self.resolve(binding.expr, binding.scope)
            case Parameter():
                return self._resolve_parameter(binding)
        return [UNKNOWN]

    def _resolve_elements(self, node: ast.expr, scope: Scope) -> Iterable[Value]:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [v for part in node.elts for v in self.resolve(part, scope)]
        return [value if value == SOME_TENSOR else UNKNOWN for value in self.resolve(node, scope)]

    def _resolve_parameter(self, parameter: Parameter) -> list[Value]:
        """Return the default, what calls of the function by its name pass, and UNKNOWN for all other calls."""
        function, name = parameter.function, getattr(parameter.function, "name", "")
        found: list[Value] = [UNKNOWN]
        if name in ENTRY_FUNCTIONS and may_be_tensor(parameter.name, function):
            found.append(SOME_TENSOR)
        if parameter.default:
            found += self.resolve(parameter.default, parameter.scope)
        for call, scope in self._calls.get(name, [])[:MOST_VALUES]:
            if argument := find_argument(parameter.name, function, call):
                found += self.resolve(argument, scope)
        return found

    def _get_attributes(self, owners: Iterable[Value], name: str) -> list[Value]:
        return [value for owner in owners for value in self._get_attribute(owner, name)]

    def _get_attribute(self, owner: Value, name: str) -> Iterable[Value]:
        match owner:
            case Dotted(name=full) if full == OWN_NAME:
                return self._resolve_name(name, self.module)
            case Dotted(name=full):
                return [Dotted(join_names(full, name))]
            case Local(node=ast.ClassDef() as node) if name in self.scopes[node].bindings:
                return self._variables.get((self.scopes[node], name), [])
        return [Dotted(f"{UNKNOWN_NAME}.{name}")]

    def _call(self, function: Value, call: ast.Call, scope: Scope) -> Iterable[Value]:
        match function:
            case Local(node=node) if isinstance(node, Function):
                return self._variables.get((self.scopes[node], RETURN), [])
            case Dotted(name="builtins.type") if len(call.args) == 1:
                objects = self.resolve(call.args[0], scope)
                return [Dotted(v.name.removesuffix("()")) if isinstance(v, Dotted) else UNKNOWN for v in objects]
            case Dotted(name="functools.partial") if call.args:
                return self.resolve(call.args[0], scope)
            case Dotted(name=name):
                found = self._look_up(name, call, scope)
                return [Dotted(name_result(name))] if found is None else found
        return [UNKNOWN]

    def _look_up(self, function: str, call: ast.Call, scope: Scope) -> list[Value] | None:
        """Return what a function finds that looks something up by name, and None for other functions."""
        owners = self.resolve(call.func.value, scope) if isinstance(call.func, ast.Attribute) else []
        named = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
        match function.rpartition(".")[2], call.args or named:
            case "getattr", [owner, name, *_]:
                return self._get_named(self.resolve(owner, scope), name, scope)
            case "vars", [owner]:
                return self._get_attributes(self.resolve(owner, scope), "__dict__")
            case "__getattribute__" | "__getattr__", [name] if owners:
                return self._get_named(owners, name, scope)
            case "get" | "__getitem__", [name, *_] if owners:
                return self._get_items(owners, name, scope)
            case "import_module", [name, *_]:
                return self._import(name, scope)
            case "__import__", [name, *rest]:
                is_whole = len(rest) > 2 or any(keyword.arg == "fromlist" for keyword in call.keywords)
                return self._import(name, scope, is_whole)
        return None

    def _read_names(self, node: ast.expr, scope: Scope) -> list[str]:
        """Return the names that an expression may hold; a name that is only known at run time is a question mark."""
        texts = map(read_text, self.resolve(node, scope))
        return [UNKNOWN_NAME if text is None else text for text in texts]

    def _get_named(self, owners: list[Value], name: ast.expr, scope: Scope) -> list[Value]:
        return [v for text in self._read_names(name, scope) for v in self._get_attributes(owners, text)]

    def _import(self, name: ast.expr, scope: Scope, is_whole: bool = True) -> list[Value]:
        """Return the module of this name, or the package around it: `__import__("os.path")` returns `os`."""
        names = [text if is_whole else text.split(".")[0] for text in self._read_names(name, scope)]
        return [Dotted(COMPUTED_MODULE if text == UNKNOWN_NAME else join_names(text)) for text in names]

    def _get_items(self, containers: list[Value], index: ast.expr, scope: Scope) -> list[Value]:
        return [value for container in containers for value in self._get_item(container, index, scope)]

    def _get_item(self, container: Value, index: ast.expr, scope: Scope) -> Iterable[Value]:
        match container:
            case Dotted(name="sys.modules"):
                return self._import(index, scope)
            case Dotted(name="builtins.globals()" | "builtins.locals()" | "builtins.vars()"):
                return [v for text in self._read_names(index, scope) for v in self._resolve_name(text, self.module)]
            case Dotted(name=name) if name == "builtins" or name.endswith(".__dict__"):
                return self._get_named([Dotted(name.removesuffix(".__dict__"))], index, scope)
            case Dotted(name=name):
                return [container if name in (TENSOR, UNKNOWN_NAME) else Dotted(f"{name}[]")]
        return [UNKNOWN]


def _find_root(node: ast.expr) -> str | None:
    """Return the name that a chain of calls, attributes and items begins with."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
