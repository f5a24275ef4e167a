"""One pass over a file's live code that records the names it uses, from outside the file and of its own."""

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pkb.screen.names import OWN_NAME, Names
from pkb.screen.scopes import Comprehension, Definition, Function, Scope, list_parameters
from pkb.screen.torch_names import TENSOR, UNKNOWN_NAME, join_names
from pkb.screen.values import UNKNOWN, Dotted, Literal, Local

_PLAIN_DECORATORS = (
    *("builtins.property", "builtins.staticmethod", "builtins.classmethod", "contextlib.contextmanager"),
    *("dataclasses.dataclass", "functools.cache", "functools.lru_cache", "functools.wraps", "torch.no_grad"),
    *("torch.inference_mode", "torch.enable_grad", "triton."),
)
"""Decorators that do not call the function, nor pass it on to code that may."""
_LOOKUPS = ("builtins.getattr", "builtins.hasattr", "builtins.setattr", "builtins.delattr", "builtins.vars")
RUNNERS = ("builtins.exec", "builtins.eval", "builtins.compile")
_REWRITERS = {
    *("globals", "vars", "locals", "setattr", "getattr", "exec", "eval", "builtins", "__builtins__", "__globals__"),
    *("__dict__", "__setattr__", "__import__", "import_module", "modules", OWN_NAME),
}
"""Names with which a file may change its own constants unseen: no branch of it is taken for dead then."""
_MODULES = {
    *("builtins", "ctypes", "gc", "inspect", "os", "subprocess", "sys", "torch", "torch._C", "torch.cuda"),
    *("torch.distributed", "torch.distributed._functional_collectives", "torch.distributed._symmetric_memory"),
    *("torch.nn.functional", "torch.ops", "torch.ops.aten", "torch.ops.symm_mem", "torch.ops._c10d_functional"),
}
"""Modules that must not be passed to code in which names are not followed."""


@dataclass(frozen=True, eq=False)
class Use:
    """A place that names something from outside the file."""

    name: str
    line: int
    function: Function | None
    """The innermost function around the place; None at the top of the file."""
    scope: Scope
    node: ast.AST
    call: ast.Call | None = None
    """The call, where the name is called."""
    stored: bool = False
    """Whether the name is assigned to, or deleted."""

    @property
    def what(self) -> str:
        """The name as users see it, without the parts that are only known at run time."""
        return self.name.removeprefix(UNKNOWN_NAME).removesuffix(f".{UNKNOWN_NAME}")


@dataclass(frozen=True, eq=False)
class LocalUse:
    """A place that names a function or class of the file itself."""

    origin: Definition | None
    target: Definition
    node: ast.AST
    call: ast.Call | None = None
    scope: Scope | None = None


class Reader(ast.NodeVisitor):
    """Visit all code of a file that is not plainly dead, and record what it does."""

    def __init__(self, tree: ast.Module, names: Names):
        self.names, self.scope = names, names.module
        self.function: Function | None = None
        self.uses: list[Use] = []
        self.imports: list[Use] = []
        self.local_uses: list[LocalUse] = []
        self.tries: list[tuple[ast.Try | ast.TryStar, Function | None]] = []
        self.launches: list[Use] = []
        self.escapes: list[Use] = []
        """Modules that are passed to code in which names are not followed."""
        self.decorators: dict[Definition, set[str]] = {}
        self.texts: list[tuple[str, int]] = []
        """Literal strings that are run as code, with the lines that run them."""
        self.unread: list[Use] = []
        """Places that run code which is no literal string."""
        self._calls: dict[ast.AST, ast.Call] = {}
        self._rewrites_names = any(_get_name(node) in _REWRITERS for node in ast.walk(tree))
        self._visit_block(tree.body)

    def resolve_names(self, node: ast.expr) -> set[str]:
        """Return the full names of the outside things that an expression may stand for."""
        return {v.name for v in self.names.resolve(node, self.scope) if isinstance(v, Dotted)}

    def generic_visit(self, node: ast.AST) -> None:
        for name, child in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            if isinstance(child, list) and child and isinstance(child[0], ast.stmt):
                self._visit_block(child)
            else:
                self._visit_all(child if isinstance(child, list) else [child])

    def _visit_all(self, nodes: Iterable[object]) -> None:
        for node in nodes:
            if isinstance(node, ast.AST):
                self.visit(node)

    def _visit_block(self, body: list[ast.stmt]) -> None:
        """Visit statements up to the first that leaves the block: what follows a `return` is dead."""
        for statement in body:
            self.visit(statement)
            if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
                return

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        truths = self._find_truths(node.test)
        if truths != {False}:
            self._visit_block(node.body)
        if truths != {True}:
            self._visit_block(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        if self._find_truths(node.test) != {False}:
            self._visit_block(node.body)
        self._visit_block(node.orelse)

    def _find_truths(self, test: ast.expr) -> set[bool | None]:
        """Return the truth values that a test may have; None stands for one that is only known at run time."""
        if self._rewrites_names:
            return {None}
        return {bool(v.value) if isinstance(v, Literal) else None for v in self.names.resolve(test, self.scope)}

    @contextmanager
    def _enter(self, scope: Scope, function: Function | None) -> Iterator[None]:
        before = self.scope, self.function
        self.scope, self.function = scope, function
        yield
        self.scope, self.function = before

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_around(node, node.decorator_list)
        self.decorators[node] = {name.removesuffix("()") for d in node.decorator_list for name in self.resolve_names(d)}
        if not all(name.startswith(_PLAIN_DECORATORS) for name in self.decorators[node]):
            self._record_local_use(node, node)
        self._visit_all(default for _, default in list_parameters(node))
        with self._enter(self.names.scopes[node], node):
            self._visit_block(node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def _visit_around(self, node: Definition, parts: Iterable[ast.AST]) -> None:
        """Visit decorators and bases: a call of the function or class also runs what they refer to."""
        first = len(self.local_uses)
        self._visit_all(parts)
        self.local_uses += [LocalUse(node, use.target, use.node) for use in self.local_uses[first:]]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._record_local_use(node, node)
        self._visit_all(default for _, default in list_parameters(node))
        with self._enter(self.names.scopes[node], node):
            self.visit(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_around(node, [*node.decorator_list, *node.bases, *node.keywords])
        for part in node.body:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                self.local_uses.append(LocalUse(node, part, part))
        first = len(self.local_uses)
        with self._enter(self.names.scopes[node], self.function):
            self._visit_block(node.body)
        inside = [use for use in self.local_uses[first:] if use.origin is self.function]
        self.local_uses += [LocalUse(node, use.target, use.node) for use in inside]

    def _visit_comprehension(self, node: Comprehension) -> None:
        self.visit(node.generators[0].iter)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        with self._enter(self.names.scopes[node], self.function):
            self._visit_all([*node.generators[0].ifs, *node.generators[1:], *parts])

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _visit_comprehension

    def visit_Import(self, node: ast.Import) -> None:
        self.imports += [self._make_use(alias.name, node) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports += [self._make_use(f"{node.module or ''}.{alias.name}", node) for alias in node.names]

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._record(node)
            self._record_mentioned(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._record(node)
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name):
            self._record_local(root)
            self._record_mentioned(root)
        else:
            self.visit(root)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.uses += [self._make_use(f"{name}[]", node, stored=True) for name in self.resolve_names(node.value)]
        else:
            self._record_found(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self._calls[node.func] = node
        functions = self.resolve_names(node.func)
        if functions & {*RUNNERS}:
            self._record_run(node)
        elif not functions & {*_LOOKUPS}:
            self._record_escapes([*node.args, *(keyword.value for keyword in node.keywords)])
        if isinstance(node.func, ast.Subscript):
            bases = [v for v in self.names.resolve(node.func.value, self.scope) if isinstance(v, Dotted)]
            self.launches += [self._make_use(v.name, node) for v in bases]
        self._record_found(node)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp | ast.AugAssign) -> None:
        if isinstance(node.op, ast.MatMult):
            self.uses.append(self._make_use("operator.matmul", node))
        self.generic_visit(node)

    visit_AugAssign = visit_BinOp

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(self.scope.node, ast.ClassDef) or any(
            not isinstance(t, ast.Name | ast.Tuple) for t in node.targets
        ):
            self._record_escapes([node.value])
        self.generic_visit(node)

    def visit_List(self, node: ast.List | ast.Set) -> None:
        self._record_escapes(node.elts)
        self.generic_visit(node)

    visit_Set = visit_List

    def visit_Dict(self, node: ast.Dict) -> None:
        self._record_escapes(node.values)
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        self.tries.append((node, self.function))
        self.generic_visit(node)

    visit_TryStar = visit_Try

    def _record_run(self, node: ast.Call) -> None:
        """Record the code that `exec`, `eval` or `compile` gets; a `compile` inside an `exec` records its own."""
        sources = node.args[:1] or [keyword.value for keyword in node.keywords if keyword.arg == "source"]
        for value in [v for source in sources for v in self.names.resolve(source, self.scope)] or [UNKNOWN]:
            if isinstance(value, Literal) and isinstance(value.value, str | bytes):
                text = value.value if isinstance(value.value, str) else value.value.decode(errors="replace")
                self.texts.append((text, node.lineno))
            elif value != Dotted("builtins.compile()"):
                self.unread.append(self._make_use(next(iter(self.resolve_names(node.func))), node))

    def _record_escapes(self, nodes: Iterable[ast.expr]) -> None:
        for node in nodes:
            if isinstance(node, ast.Name | ast.Attribute):
                self.escapes += [self._make_use(name, node) for name in self.resolve_names(node) & _MODULES]

    def _record(self, node: ast.Name | ast.Attribute) -> None:
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            # An attribute of one tensor is its own; an attribute of the class is every tensor's.
            bases = {base for base in self.resolve_names(node.value) if not base.startswith((TENSOR, "torch.Tensor."))}
            self.uses += [self._make_use(join_names(base, node.attr), node, stored=True) for base in bases]
            return
        self.uses += [self._make_use(name, node) for name in self.resolve_names(node)]
        self._record_local(node)

    def _record_local(self, node: ast.expr) -> None:
        for value in self.names.resolve(node, self.scope):
            if isinstance(value, Local):
                self._record_local_use(value.node, node)

    def _record_mentioned(self, node: ast.Name) -> None:
        """Record what may be taken out of a variable from outside: `KERNELS["fast"][0]`, where KERNELS is a dict."""
        owner = self.scope.find_owner(node.id)
        if self.function and owner and owner is not self.names.scopes[self.function]:
            found = self.names.find_mentioned(owner, node.id)
            self.local_uses += [LocalUse(self.function, target, node) for target in found]

    def _record_found(self, node: ast.Call | ast.Subscript) -> None:
        """Record what a look-up has found: `getattr(dist, "all_reduce")`, `globals()["f"]`."""
        found = {name for name in self.resolve_names(node) if not name.endswith((")", "]"))}
        self.uses += [self._make_use(name, node) for name in found - {UNKNOWN.name, TENSOR}]
        self._record_local(node)

    def _record_local_use(self, target: Definition, node: ast.AST) -> None:
        self.local_uses.append(LocalUse(self.function, target, node, self._calls.get(node), self.scope))

    def _make_use(self, name: str, node: ast.AST, stored: bool = False) -> Use:
        line = getattr(node, "lineno", 0)
        return Use(name, line, self.function, self.scope, node, self._calls.get(node), stored)


def _get_name(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
    return None
