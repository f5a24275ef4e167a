"""Read what a problem file declares without running the rest of it, and so without torch."""

import ast
from pathlib import Path
from types import ModuleType

from pkb.problems.problem import Problem
from pkb.problems.visible_source import find_statements


def read_declaration(path: Path) -> Problem | None:
    """Return the problem with its title, sizes, conditions and cost: to be listed or shown, not posed.

    Returns None where that takes more than PROBLEM, `cost` and the statements that these two use.
    """
    try:
        text = path.read_text()
        tree = ast.parse(text, str(path))
        body = find_statements(tree, text, ("PROBLEM", "cost"))
        module = ModuleType(f"pkb_declaration_{path.stem}", ast.get_docstring(tree))
        module.__file__ = str(path)
        exec(compile(ast.Module(body, type_ignores=[]), str(path), "exec"), vars(module))
    except Exception:
        # To load the file, as a whole, will either work or say what is wrong with it.
        return None
    problem = vars(module).get("PROBLEM")
    return problem.bind(module, path) if isinstance(problem, Problem) else None
