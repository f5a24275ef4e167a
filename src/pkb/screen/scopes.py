"""Who binds which name: every scope of a file, and all that its names may be bound to."""

import ast
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = Function | ast.ClassDef
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


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
    """Bound to the elements of the expression: by a loop, or by unpacking."""


@dataclass(frozen=True, eq=False)
class Parameter:
    function: Function
    name: str
    default: ast.expr | None
    scope: "Scope"
    """Where the default is evaluated."""


class Opaque:
    """Bound to something that is not followed."""


Binding = Imported | Defined | Assigned | Parameter | Opaque


@dataclass(eq=False)
class Scope:
    node: ast.AST
    parent: "Scope | None" = None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    """Modules imported with `*`."""
    elsewhere: dict[str, "Scope"] = field(default_factory=dict)
    """Names declared `global` or `nonlocal`, and the scope that they belong to."""

    @property
    def module(self) -> "Scope":
        return self.parent.module if self.parent else self

    def bind(self, name: str, binding: Binding) -> None:
        self.elsewhere.get(name, self).bindings.setdefault(name, []).append(binding)

    def owner(self, name: str) -> "Scope | None":
        """The scope whose binding a use of the name here means."""
        home = self.elsewhere.get(name, self)
        if name in home.bindings:
            return home
        return home.parent.owner(name) if home.parent else None

    def every_star(self) -> list[str]:
        return self.stars + (self.parent.every_star() if self.parent else [])

    def lookup(self, name: str) -> list[Binding]:
        owner = self.owner(name)
        return owner.bindings[name] if owner else []


def scopes_of(tree: ast.Module) -> dict[ast.AST, Scope]:
    """Every scope by the node that opens it."""
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

    def _open(self, node: ast.AST) -> Scope:
        # What is inside a class does not see the names of its body.
        parent = self.scope.parent if isinstance(self.scope.node, ast.ClassDef) else self.scope
        self.scopes[node] = Scope(node, parent)
        return self.scopes[node]

    def _inside(self, scope: Scope, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        outer, self.scope = self.scope, scope
        self.visit_all(nodes)
        self.scope = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.bind(node.name, Defined(node))
        self.visit_all(node.decorator_list)
        self._function(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node, [node.body])

    def _function(self, node: Function, body: list[ast.stmt] | list[ast.expr]) -> None:
        inner = self._open(node)
        for name, default in parameters(node):
            inner.bind(name, Parameter(node, name, default, self.scope))
            if default:
                self.visit(default)
        self._inside(inner, body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.bind(node.name, Defined(node))
        self.visit_all([*node.decorator_list, *node.bases, *(k.value for k in node.keywords)])
        self._inside(self._open(node), node.body)

    def _comprehension(self, node: Comprehension) -> None:
        inner = self._open(node)
        for k, generator in enumerate(node.generators):
            # The first iterable is evaluated outside, where the loop's own names do not hold.
            where = self.scope if k == 0 else inner
            self._inside(where, [generator.iter])
            _bind_targets(inner, generator.target, Assigned(generator.iter, where, element=True))
            self._inside(inner, generator.ifs)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._inside(inner, parts)

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

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
                self.scope.elsewhere[name] = self.scope.parent.owner(name) or self.scope.parent

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


def parameters(node: Function) -> list[tuple[str, ast.expr | None]]:
    """Names and defaults, the positional ones first."""
    a = node.args
    positional = [*a.posonlyargs, *a.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(a.defaults))
    found = list(zip([arg.arg for arg in positional], [*missing, *a.defaults], strict=True))
    found += zip([arg.arg for arg in a.kwonlyargs], a.kw_defaults, strict=True)
    return found + [(arg.arg, None) for arg in (a.vararg, a.kwarg) if arg]


def _bind(scope: Scope, target: ast.expr, value: ast.expr) -> None:
    """Bind pairwise where both sides spell out their elements."""
    sequences = ast.Tuple | ast.List
    if isinstance(target, ast.Name):
        scope.bind(target.id, Assigned(value, scope))
    elif isinstance(target, sequences) and isinstance(value, sequences) and _pairs(target, value):
        for one, its in zip(target.elts, value.elts, strict=True):
            _bind(scope, one, its)
    else:
        _bind_targets(scope, target, Assigned(value, scope, element=True))


def _pairs(target: ast.Tuple | ast.List, value: ast.Tuple | ast.List) -> bool:
    starred = any(isinstance(part, ast.Starred) for part in [*target.elts, *value.elts])
    return len(target.elts) == len(value.elts) and not starred


def _bind_targets(scope: Scope, target: ast.expr, binding: Binding) -> None:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            scope.bind(node.id, binding)
