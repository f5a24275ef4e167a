"""A problem in the form of the public ParallelKernelBench: a reference in one file, inputs for all of them in another.

A checkout has `reference/<number>_<name>.py`, each with a `solution`, and `utils/input_output_tensors.py`, whose
`create_input_tensor` returns the arguments of a problem by its number.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from pkb.base.printable import clean_line
from pkb.errors import UsageError
from pkb.problems.checkout_modules import find_modules
from pkb.problems.cost import Cost, Link
from pkb.problems.problem import PUBLISHED, SOUND, Problem
from pkb.problems.size import Dimensions, Size

# torch is imported on use, as in every module that `pkb list` needs.
if TYPE_CHECKING:
    from pkb.problems.case import Case

REFERENCES = "reference"
_INPUTS = "utils.input_output_tensors"
_SIZES = {"tiny": Size(128, 128), "paper": Size(1024, 1024)}


@dataclass(frozen=True, eq=False, repr=False)
class PublishedProblem(Problem):
    """A reference of a checkout. The checkout says nothing of costs and conditions: whatever can be drawn is posed."""

    category: str = "published"
    source: str = "a checkout of ParallelKernelBench"
    sizes: Mapping[str, Size] = field(default_factory=lambda: _SIZES)

    functions: ClassVar[tuple[str, ...]] = ("solution",)
    input_kinds: ClassVar[tuple[str, ...]] = (SOUND, PUBLISHED)

    @property
    def root(self) -> Path:
        return self.path.parents[1]

    @property
    def helper_folder(self) -> Path:
        return self.root

    def bind(self, module: ModuleType, path: Path) -> Problem:
        bound = super().bind(module, path)
        # The published suite compares what is returned, and nothing else.
        return replace(bound, may_overwrite=bound.arguments)

    def list_files(self) -> list[Path]:
        """Return the reference, the module that draws inputs, and what these import from the checkout."""
        return find_modules(self.root).list_files([f"{REFERENCES}.{self.path.stem}", _INPUTS])

    def inputs(self, case: "Case") -> tuple[Any, ...]:
        from pkb.problems.published_draws import draw_from, keep_groups

        draw = find_modules(self.root).load(_INPUTS).create_input_tensor
        posed = case.rank, case.world, self.id, (case.m, case.n), case.dtype
        with keep_groups(case), nullcontext() if case.published else draw_from(case):
            return tuple(draw(*posed, trial=case.trial, device=case.device))

    def check_pose(self, size: Size, dtype: str, world: int) -> None:
        """Raise UsageError, with the reason that the checkout gives, where its inputs cannot be drawn like this."""
        self.cost(self.dimensions(size, dtype, world))

    def cost(self, case: "Case | Dimensions") -> Cost:
        """Return the arguments of rank 0, each read once: nothing else is known without running the reference."""
        return Cost(0.0, _weigh_arguments(self, case.m, case.n, case.itemsize, case.world), Link(0.0, 0.0))

    def compute_floor(self, case: "Case") -> Cost:
        """Return no work at all: an argument need not be read."""
        return Cost(0.0, 0.0, Link(0.0, 0.0))

    def list_hidden_sizes(self, dtype: str = "float32", world: int = 1) -> tuple[Size, ...]:
        """Return none: the checkout does not say which sizes its inputs take."""
        return ()

    def show_source(self) -> str:
        return self.path.read_text(encoding="utf-8")


def load_published_problem(path: Path) -> Problem:
    """Load the reference in a file of a checkout. Raises what the file raises."""
    module = find_modules(path.parents[1]).load(f"{REFERENCES}.{path.stem}")
    problem = PublishedProblem()
    return problem.bind(module, path) if hasattr(module, "solution") else replace(problem, module=module)


def find_published_root(path: Path) -> Path | None:
    """Return the checkout that a reference's file is part of; None for any other file."""
    root = path.parent.parent
    return root if path.parent.name == REFERENCES and is_published_root(root) else None


def is_published_root(folder: Path) -> bool:
    """Return whether a folder is a checkout of ParallelKernelBench."""
    return (folder / REFERENCES).is_dir() and folder.joinpath(*_INPUTS.split(".")).with_suffix(".py").is_file()


@cache
def _weigh_arguments(problem: PublishedProblem, m: int, n: int, itemsize: int, world: int) -> float:
    """Return the bytes of the arguments of rank 0, which is the root where there is one."""
    from pkb.base.pytree import iterate_tensors

    dtype = "float32" if itemsize == 4 else "bfloat16"
    case = replace(problem.case(Size(m, n), dtype, world), published=True)
    try:
        drawn = problem.inputs(case)
    except Exception as error:
        raise UsageError(
            f"{problem.stem} cannot be posed with {world} ranks at {case.m} x {case.n}: the checkout's "
            f"create_input_tensor raised {clean_line(f'{type(error).__name__}: {error}', 500)}; choose another --nproc "
            "or size, or correct the file"
        ) from error
    return float(sum(tensor.nbytes for tensor in iterate_tensors(drawn)))
