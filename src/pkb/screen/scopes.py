"""The scopes of a file, and everything that the names in each of them may be bound to."""

import ast
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = Function | ast.ClassDef
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
RETURN = "return"
"""The name under which a function's scope holds what the function returns; no variable can be called so."""


@dataclass(frozen=True)
class Imported:
    name: str


@dataclass(frozen=True, eq=False)
class Defined:
    node: Definition


@dataclass(frozen=True, eq=False)
class Assigned:
    expr: ast.expr
    scope: "Scope"
    element: bool = False
    """Whether the name is bound to the elements of the expression: by a loop, or by unpacking."""


@dataclass(frozen=True, eq=False)
class Parameter:
    function: Function
    name: str
    default: ast.expr | None
    scope: "Scope"
    """The scope in which the default is evaluated."""


class Opaque:
    """The binding of a name to something that is not followed."""


Binding = Imported | Defined | Assigned | Parameter | Opaque


@dataclass(eq=False)
class Scope:
    node: ast.AST
    parent: "Scope | None" = None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    """Modules imported with `*`."""
    elsewhere: dict[str, "Scope"] = field(default_factory=dict)
    """Names that are declared `global` or `nonlocal`, with the scopes that they belong to."""

    @property
    def module(self) -> "Scope":
        return self.parent.module if self.parent else self

    def bind(self, name: str, binding: Binding) -> None:
        self.elsewhere.get(name, self).bindings.setdefault(name, []).append(binding)

    def find_owner(self, name: str) -> "Scope | None":
        """Return the scope that binds the name, as seen from this scope."""
        home = self.elsewhere.get(name, self)
        if name in home.bindings:
            return home
        return home.parent.find_owner(name) if home.parent else None

    def list_stars(self) -> list[str]:
        """Return the modules that this scope and the scopes around it import with `*`."""
        return self.stars + (self.parent.list_stars() if self.parent else [])

    def look_up(self, name: str) -> list[Binding]:
        """Return all bindings of a name, as seen from this scope."""
        owner = self.find_owner(name)
        return owner.bindings[name] if owner else []


def collect_scopes(tree: ast.Module) -> dict[ast.AST, Scope]:
    """Return the scopes of a file under the nodes that open them."""
    collector = _Collector(tree)
    collector.visit_all(tree.body)
    return collector.scopes


class _Collector(ast.NodeVisitor):
    def __init__(self, tree: ast.Module):
        self.scope = Scope(tree)
        self.scopes: dict[ast.AST, Scope] = {tree: self.scope}

    def visit_all(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        for node in nodes:
            self.visit(node)

    def _open_scope(self, node: ast.AST) -> Scope:
        # Functions inside a class do not see the names of its body.
        parent = self.scope.parent if isinstance(self.scope.node, ast.ClassDef) else self.scope
        self.scopes[node] = Scope(node, parent)
        return self.scopes[node]

    def _visit_inside(self, scope: Scope, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        outer, self.scope = self.scope, scope
        self.visit_all(nodes)
        self.scope = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.bind(node.name, Defined(node))
        self.visit_all(node.decorator_list)
        self._visit_function(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_function(node, [node.body])
        inner = self.scopes[node]
        inner.bind(RETURN, Assigned(node.body, inner))

    def visit_Return(self, node: ast.Return) -> None:
        self.generic_visit(node)
        if node.value:
            self.scope.bind(RETURN, Assigned(node.value, self.scope))

    def _visit_function(self, node: Function, body: list[ast.stmt] | list[ast.expr]) -> None:
        inner = self._open_scope(node)
        for name, default in list_parameters(node):
            inner.bind(name, Parameter(node, name, default, self.scope))
            if default:
                self.visit(default)
        self._visit_inside(inner, body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.bind(node.name, Defined(node))
        self.visit_all([*node.decorator_list, *node.bases, *(k.value for k in node.keywords)])
        self._visit_inside(self._open_scope(node), node.body)

    def _visit_comprehension(self, node: Comprehension) -> None:
        inner = self._open_scope(node)
        for k, generator in enumerate(node.generators):
            # The first iterable is evaluated outside, where the loop's own names do not hold.
            where = self.scope if k == 0 else inner
            self._visit_inside(where, [generator.iter])
            _bind_targets(inner, generator.target, Assigned(generator.iter, where, element=True))
            self._visit_inside(inner, generator.ifs)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._visit_inside(inner, parts)

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _visit_comprehension

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.split(".")[0]
            self.scope.bind(alias.asname or top, Imported(alias.name if alias.asname else top))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        source = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.scope.stars.append(source)
            else:
                self.scope.bind(alias.asname or alias.name, Imported(f"{source}.{alias.name}"))

    def visit_Global(self, node: ast.Global) -> None:
        self.scope.elsewhere |= dict.fromkeys(node.names, self.scope.module)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            if self.scope.parent:
                self.scope.elsewhere[name] = self.scope.parent.find_owner(name) or self.scope.parent

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            _bind(self.scope, target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        if node.value:
            _bind(self.scope, node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.generic_visit(node)
        home = self.scope
        while isinstance(home.node, Comprehension) and home.parent:
            home = home.parent
        _bind(home, node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)
        _bind_targets(self.scope, node.target, Opaque())

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        _bind_targets(self.scope, node.target, Assigned(node.iter, self.scope, element=True))
        self.generic_visit(node)

    visit_AsyncFor = visit_For

    def visit_withitem(self, node: ast.withitem) -> None:
        self.generic_visit(node)
        if node.optional_vars:
            _bind(self.scope, node.optional_vars, node.context_expr)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.scope.bind(node.name, Opaque())
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.scope.bind(node.name, Opaque())
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs


def list_parameters(node: Function) -> list[tuple[str, ast.expr | None]]:
    """Return the names and defaults of a function's parameters, the positional ones first."""
    a = node.args
    positional = [*a.posonlyargs, *a.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(a.defaults))
    found = list(zip([arg.arg for arg in positional], [*missing, *a.defaults], strict=True))
    found += zip([arg.arg for arg in a.kwonlyargs], a.kw_defaults, strict=True)
    return found + [(arg.arg, None) for arg in (a.vararg, a.kwarg) if arg]


def _bind(scope: Scope, target: ast.expr, value: ast.expr) -> None:
    """Bind a target to a value, element by element where both spell their elements out."""
    sequences = ast.Tuple | ast.List
    if isinstance(target, ast.Name):
        scope.bind(target.id, Assigned(value, scope))
    elif isinstance(target, sequences) and isinstance(value, sequences) and _is_pairwise(target, value):
        for part, its_value in zip(target.elts, value.elts, strict=True):
            _bind(scope, part, its_value)
    else:
        _bind_targets(scope, target, Assigned(value, scope, element=True))


def _is_pairwise(target: ast.Tuple | ast.List, value: ast.Tuple | ast.List) -> bool:
    starred = any(isinstance(part, ast.Starred) for part in [*target.elts, *value.elts])
    return len(target.elts) == len(value.elts) and not starred


def _bind_targets(scope: Scope, target: ast.expr, binding: Binding) -> None:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            scope.bind(node.id, binding)
