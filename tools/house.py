"""Measure the house: modules per folder, names, sentences, arrows against the layers, and import times.

    python tools/house.py            # everything
    python tools/house.py --fast     # without import times

`tests/test_house.py` fails on an arrow that points the wrong way, a crowded folder, or too many participles.
"""

import ast
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
MOST_MODULES = 15
MOST_PARTICIPLES = 0.02

LAYERS = (
    ("pkb", "pkb.errors"),
    ("pkb.base",),
    ("pkb.display",),
    ("pkb.problems", "pkb.symmetric"),
    ("pkb.settings", "pkb.triton_lib", "pkb.cuda_lib", "pkb.published_lib"),
    ("pkb.hardware", "pkb.backends"),
    ("pkb.platforms", "pkb.screen", "pkb.sandbox"),
    ("pkb.protocol",),
    ("pkb.checks",),
    ("pkb.rank",),
    ("pkb.nursery",),
    ("pkb.trial",),
    ("pkb.record",),
    ("pkb.row",),
    ("pkb.frames",),
    ("pkb.candidate", "pkb.provenance", "pkb.failure", "pkb.runs", "pkb.speedup"),
    ("pkb.judge.setup",),
    ("pkb.judge.worlds",),
    ("pkb.judge.correctness",),
    ("pkb.judge.building", "pkb.judge.timing", "pkb.judge.profiling"),
    ("pkb.judge",),
    ("pkb.tools", "pkb.engine", "pkb.analyse"),
    ("pkb.generate", "pkb.report"),
    ("pkb.agent",),
    ("pkb.cli",),
    ("pkb.__main__",),
)
"""From the bottom up. A module may import its own package, and packages of lower rows."""

FORBIDDEN = {
    "pkb.rank": ("pkb.judge", "pkb.screen", "pkb.record", "pkb.speedup", "pkb.failure"),
    "pkb.nursery": ("pkb.judge", "pkb.screen", "pkb.record", "pkb.speedup", "pkb.failure"),
    "pkb.protocol": ("pkb.judge", "pkb.screen", "pkb.record", "pkb.speedup", "pkb.failure"),
    "pkb.judge": ("pkb.rank", "pkb.nursery"),
}
"""Imports that would put code of one process into another, whatever the layers say."""

_PUBLIC = ("pkb",)
"""The package's own __init__ names everything that users import, on first use."""
_VERBS_IN_ED = {
    "need",
    "speed",
    "seed",
    "feed",
    "embed",
    "exceed",
    "proceed",
    "shed",
    "spread",
    "thread",
    "bleed",
    "reseed",
}
_PARTICIPLES = {
    *("told", "given", "seen", "drawn", "kept", "held", "known", "shown", "taken", "made", "found", "born", "worn"),
    *("left", "sent", "written", "gone", "hung", "chosen", "spent", "begun", "built", "bound", "laid", "lost"),
}
_FRAGMENT = re.compile(r"(Of|What|Who|Whose|How|By|So|As|Where|Such|Those|And|Or|For|In|To|With)\b")
"""A predicate may begin with "Whether"."""


def list_modules() -> dict[str, Path]:
    """Return every module outside the suites by its dotted name."""
    paths = [path for path in sorted(SOURCE.glob("pkb/**/*.py")) if "suites" not in path.parts]
    return {".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def list_arrows() -> Iterator[tuple[str, str]]:
    """Yield (importing module, imported module) for every import, wherever in the file it stands."""
    modules = list_modules()
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((name, one.name) for one in node.names if one.name.split(".")[0] == "pkb")
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pkb":
                for one in node.names:
                    inner = f"{node.module}.{one.name}"
                    yield name, inner if inner in modules else str(node.module)


def find_layer(module: str) -> tuple[int, str]:
    """Return the row of a module's layer and the package that it belongs to: the longest name that fits."""
    fits = [
        (len(package), row, package)
        for row, packages in enumerate(LAYERS)
        for package in packages
        if module == package or (package != "pkb" and module.startswith(f"{package}."))
    ]
    if not fits:
        raise SystemExit(f"{module} is in no layer; add its package to LAYERS in tools/house.py")
    _, row, package = max(fits)
    return row, package


def list_wrong_arrows() -> list[str]:
    """Return the imports that point upwards, sideways, or into another process."""
    wrong = []
    for importing, imported in list_arrows():
        (row, package), (other_row, other) = find_layer(importing), find_layer(imported)
        upwards = package != other and other_row >= row and importing not in _PUBLIC
        if upwards or _crosses(importing, imported):
            wrong.append(f"{importing} -> {imported}")
    return sorted(set(wrong))


def _crosses(importing: str, imported: str) -> bool:
    barred = next((names for package, names in FORBIDDEN.items() if importing.startswith(f"{package}.")), ())
    return any(imported == name or imported.startswith(f"{name}.") for name in barred)


def count_modules() -> Counter[str]:
    """Return the number of modules in each folder."""
    return Counter(
        str(path.parent.relative_to(SOURCE)) for path in list_modules().values() if path.name != "__init__.py"
    )


def list_functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function and method that is no property, with its file."""
    for path in list_modules().values():
        for node in ast.walk(ast.parse(path.read_text())):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and not any("property" in ast.unparse(one) for one in node.decorator_list):
                yield path, node


def is_participle(name: str) -> bool:
    """Whether a function's name begins with a past participle."""
    first = name.strip("_").split("_")[0]
    return first in _PARTICIPLES or (first.endswith("ed") and first not in _VERBS_IN_ED)


def list_participles() -> list[str]:
    return [f"{_place(path, node)} {node.name}" for path, node in list_functions() if is_participle(node.name)]


def list_fragments() -> list[str]:
    """Return the docstrings of functions that begin like the second half of a sentence."""
    found = ((path, node, (ast.get_docstring(node) or "").split("\n")[0]) for path, node in list_functions())
    return [f"{_place(path, node)} {text[:80]}" for path, node, text in found if _FRAGMENT.match(text)]


def list_repeated_classes() -> list[str]:
    """Return the names that more than one public class has."""
    names = Counter(
        node.name
        for path in list_modules().values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, count in names.items() if count > 1)


def measure_import(module: str, repeats: int = 3) -> float:
    """Return the median seconds of a fresh interpreter that imports one module."""
    spans = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env={"PYTHONPATH": str(SOURCE)})
        spans.append(time.perf_counter() - start)
    return statistics.median(spans)


def _place(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return f"{path.relative_to(SOURCE)}:{node.lineno}"


def _print_list(title: str, rows: list[str]) -> None:
    print(f"\n{title}: {len(rows)}")
    print("".join(f"  {row}\n" for row in rows), end="")


def main() -> None:
    print("Modules per folder")
    for folder, count in sorted(count_modules().items()):
        print(f"  {folder:28} {count:3}{'  crowded' if count > MOST_MODULES and folder != 'pkb/cli' else ''}")
    functions = list(list_functions())
    lengths = sorted((node.end_lineno or 0) - node.lineno + 1 for _, node in functions)
    participles = list_participles()
    share = 100 * len(participles) / len(functions)
    print(f"\nFunctions: {len(functions)}, median {statistics.median(lengths):g} lines, longest {lengths[-1]}")
    print(f"Named by a participle: {len(participles)} ({share:.1f} %)")
    _print_list("Participles", participles)
    _print_list("Docstrings that are fragments", list_fragments())
    _print_list("Class names with several homes", list_repeated_classes())
    _print_list("Arrows against the layers", list_wrong_arrows())
    if "--fast" not in sys.argv:
        print("\nImport times (fresh interpreter)")
        for module in ("pkb", "pkb.runs", "pkb.analyse", "pkb.report", "pkb.cli", "pkb.judge.judge"):
            print(f"  {module:20} {measure_import(module):5.2f} s")


if __name__ == "__main__":
    main()
