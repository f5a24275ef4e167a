"""Load files of a checkout so that they import one another, and nothing else in this process sees them.

A checkout's packages have names such as `utils`, which candidates, other checkouts and other programs have too. So its
modules are kept under private names, and only code of the checkout itself finds them under their own.
"""

import ast
import builtins
import hashlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


class CheckoutModules:
    """The modules below one folder, each loaded once."""

    def __init__(self, root: Path):
        self.root = root
        self.prefix = f"pkb_problem_checkout_{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"
        self._builtins = {**vars(builtins), "__import__": self._import}

    def load(self, name: str) -> ModuleType:
        """Return the module of this dotted name. Raises what its code raises."""
        private = f"{self.prefix}.{name}"
        if private in sys.modules:
            return sys.modules[private]
        parent, _, leaf = name.rpartition(".")
        package = self.load(parent) if parent else None
        module = self._make_module(name, private)
        sys.modules[private] = module
        try:
            if module.__spec__ and module.__spec__.loader:
                module.__spec__.loader.exec_module(module)
        except BaseException:
            del sys.modules[private]
            raise
        if package:
            setattr(package, leaf, module)
        return module

    def _make_module(self, name: str, private: str) -> ModuleType:
        file, folder = self._find_file(name), self.root.joinpath(*name.split("."))
        if file is None:
            # A folder without __init__.py.
            module = ModuleType(private)
            module.__path__ = [str(folder)]
            return module
        inside = [str(folder)] if file.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(private, file, submodule_search_locations=inside)
        assert spec
        module = importlib.util.module_from_spec(spec)
        vars(module)["__builtins__"] = self._builtins
        return module

    def _find_file(self, name: str) -> Path | None:
        folder = self.root.joinpath(*name.split("."))
        found = (folder / "__init__.py", folder.with_name(f"{folder.name}.py"))
        return next((file for file in found if file.is_file()), None)

    def _holds(self, name: str) -> bool:
        folder = self.root.joinpath(*name.split("."))
        # An empty folder, or one of data, is no package.
        return self._find_file(name) is not None or (folder.is_dir() and any(folder.glob("*.py")))

    def _import(
        self,
        name: str,
        scope: dict[str, Any] | None = None,
        local: dict[str, Any] | None = None,
        wanted: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as `__import__` does; a name of the checkout comes before one that is installed."""
        own = self._find_own_name(name, scope or {}, level)
        if own is None:
            return builtins.__import__(name, scope, local, wanted or (), level)
        module = self.load(own)
        for part in wanted or ():
            if not hasattr(module, part) and self._holds(f"{own}.{part}"):
                self.load(f"{own}.{part}")
        return module if wanted or level else self.load(own.split(".")[0])

    def _find_own_name(self, name: str, scope: dict[str, Any], level: int) -> str | None:
        if not level:
            return name if self._holds(name.split(".")[0]) else None
        inside = "__path__" in scope
        path = str(scope.get("__name__", "")).removeprefix(f"{self.prefix}.").split(".")
        kept = path[: len(path) - (level - inside)]
        return ".".join([*kept, *([name] if name else [])])

    def list_files(self, names: Sequence[str]) -> list[Path]:
        """Return the files of these modules, and of all modules of the checkout that they import, wherever they do."""
        found: dict[Path, None] = {}
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            file = self._find_file(name)
            if file and file not in found:
                found[file] = None
                waiting += self._list_imports(file, name)
        return [*found]

    def _list_imports(self, file: Path, name: str) -> Iterator[str]:
        scope: dict[str, Any] = {"__name__": f"{self.prefix}.{name}"} | (
            {"__path__": []} if file.name == "__init__.py" else {}
        )
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                named, level = [alias.name for alias in node.names], 0
            elif isinstance(node, ast.ImportFrom):
                base, level = node.module or "", node.level
                named = [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
            else:
                continue
            owned = filter(None, (self._find_own_name(one, scope, level) for one in named))
            yield from (part for one in owned for part in _list_packages(one))


def _list_packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: k + 1]) for k in range(len(parts))]


@cache
def find_modules(root: Path) -> CheckoutModules:
    """Return the modules of a checkout, the same ones whenever they are asked for."""
    return CheckoutModules(root)
