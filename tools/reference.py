"""Write docs/reference.md from the docstrings of what `pkb` makes public.

    python tools/reference.py          # write the page
    python tools/reference.py --check  # exit code 1 if the page is not up to date

Only documented members are listed. The sources are read and not run.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, PAGE = ROOT / "src", ROOT / "docs" / "reference.md"
GROUPS = {
    "Judge": ("evaluate", "evaluate_async", "Judge", "Candidate"),
    "What is asked": ("ProblemSettings", "JudgementSettings", "Limits", "Tolerance", "Track"),
    "Results": ("Record", "Verdict", "Run"),
    "Problems": ("list_problems", "load_problem", "Suite", "Problem", "ModelProblem", "Size", "Case", "Cost", "Normal"),
    "Costs of collectives": ("link",),
    "Errors": ("UsageError",),
}
"""What `pkb` makes public, in the order of the page. A test fails if a name is missing."""
WIDTH = 100
_HEAD = """# Reference

What `import pkb` offers, from its docstrings (`python tools/reference.py` writes this page).
[python.md](python.md) has complete examples, and [record.md](record.md) every field of a record.
"""
_AWAITED = "async def {name}(...)  # the arguments of {other}, and its result"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_homes() -> dict[str, str]:
    """Return the module of each public name, as pkb/__init__.py has it."""
    tree = ast.parse((SOURCE / "pkb" / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            homes: dict[str, str] = ast.literal_eval(node.value)
            return homes | {"link": "pkb.problems.link"}
    raise SystemExit("pkb/__init__.py has no _HOMES; tools/reference.py reads the public names there")


def parse_module(name: str) -> ast.Module:
    return ast.parse(SOURCE.joinpath(*name.split(".")).with_suffix(".py").read_text())


def write_page() -> str:
    homes = find_homes()
    parts = [_HEAD]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        parts += [piece for name in names for piece in describe(name, homes[name])]
    return "\n".join(parts).rstrip("\n") + "\n"


def describe(name: str, module: str) -> Iterator[str]:
    """Yield the pieces of one public name: a heading, its signature, its docstring, and its members."""
    tree = parse_module(module)
    yield f"### `pkb.{name}`\n"
    if module.endswith(f".{name}"):
        yield f"{ast.get_docstring(tree)}\n"
        yield from describe_members(tree.body)
        return
    node = next((one for one in tree.body if getattr(one, "name", "") == name), None)
    if isinstance(node, ast.ClassDef):
        yield from describe_class(node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield f"```python\n{fold(write_signature(node))}\n```\n\n{ast.get_docstring(node)}\n"
    else:
        yield from describe_awaitable(name, tree)


def describe_awaitable(name: str, tree: ast.Module) -> Iterator[str]:
    """Yield the pieces of a function that is made from another one, whose docstring is a template."""
    other = name.removesuffix("_async")
    (text,) = (
        ast.unparse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "wait.__doc__"
    )
    template = ast.literal_eval(text.removeprefix("f").replace("{judge.__name__}", other))
    yield f"```python\n{_AWAITED.format(name=name, other=other)}\n```\n\n{inspect.cleandoc(template)}\n"


def describe_class(node: ast.ClassDef) -> Iterator[str]:
    bases = [ast.unparse(base) for base in node.bases if ast.unparse(base) in find_homes()]
    docstring = ast.get_docstring(node)
    if docstring:
        yield f"{docstring}\n"
    if bases:
        yield f"It also has the members of {', '.join(f'`pkb.{base}`' for base in bases)}.\n"
    yield from describe_members(node.body)


def describe_members(body: list[ast.stmt]) -> Iterator[str]:
    """Yield a list of fields, and a list of methods or functions, of a class or a module."""
    fields = [*list_fields(body)]
    if fields:
        yield "\n".join(f"- `{field}`{text}" for field, text in fields) + "\n"
    functions = [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    shown = [node for node in functions if not node.name.startswith("_") or node.name == "__init__"]
    lines = [f"- `{write_signature(node)}`{indent(ast.get_docstring(node))}" for node in shown if is_shown(node)]
    if lines:
        yield "\n".join(lines) + "\n"


def is_shown(node: Function) -> bool:
    return node.name == "__init__" or ast.get_docstring(node) is not None


def list_fields(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class, each with the docstring that stands below it."""
    for node, after in zip(body, [*body[1:], None], strict=True):
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            text = indent(inspect.cleandoc(after.value.value))
        if isinstance(node, ast.AnnAssign | ast.Assign) and not ast.unparse(node).startswith("_"):
            yield ast.unparse(node), text


def write_signature(node: Function) -> str:
    """Return a function's first line without the colon; of a property, its name and type."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    decorators = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
    if decorators & {"property", "cached_property"}:
        return f"{node.name}: {ast.unparse(node.returns) if node.returns else 'Any'}"
    arguments = ast.unparse(node.args)
    for first in ("self", "cls"):
        arguments = arguments.removeprefix(f"{first}, ") if arguments != first else ""
    prefix = "async def " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{node.name}({arguments}){returns}"


def fold(signature: str) -> str:
    """Return a long signature with one argument per line."""
    if len(signature) <= WIDTH:
        return signature
    head, _, rest = signature.partition("(")
    arguments, _, returns = rest.rpartition(")")
    lines = "".join(f"    {argument},\n" for argument in arguments.split(", "))
    return f"{head}(\n{lines}){returns}"


def indent(docstring: str | None) -> str:
    """Return a docstring as the continuation of a list's entry."""
    return "".join(f"\n  {line}" if line else "\n" for line in (docstring or "").splitlines())


def main() -> None:
    page = write_page()
    if "--check" not in sys.argv:
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        raise SystemExit("docs/reference.md is not up to date; run `python tools/reference.py`")


if __name__ == "__main__":
    main()
