import pytest

import pkb
from pkb.errors import UsageError
from pkb.problems.suite import find_suite, list_problems, load_problem, select_problems


@pytest.mark.parametrize("key", [13, "13", "013", "13_gemm_allreduce", "gemm_allreduce", "GEMM_ALLREDUCE"])
def test_every_spelling_finds_the_problem(key: str | int) -> None:
    assert load_problem(key).stem == "13_gemm_allreduce"


def test_selections() -> None:
    ids = lambda text: [problem.id for problem in select_problems(text)]  # noqa: E731
    assert ids("1-8,13") == [1, 2, 3, 4, 5, 6, 7, 8, 13]
    assert ids("13,1-2,13") == [13, 1, 2]
    assert ids("all") == [problem.id for problem in list_problems()]
    assert ids("collective primitive") == ids("Collective_Primitive") == list(range(1, 9))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("allreduc", "did you mean allreduce"),
        ("500", "no problem or category '500'"),
        ("500-600", "no problem in 500-600"),
        ("", "no problem named"),
        ("tensor paralel", "did you mean Tensor Parallel"),
    ],
)
def test_unknown_ones_are_explained(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        select_problems(text)


def test_numbers_and_names_are_unique() -> None:
    everything = pkb.list_problems()
    assert len({p.id for p in everything}) == len({p.name for p in everything}) == len(everything)
    assert sum(len(list_problems(category)) for category in find_suite("parallel").categories()) == len(everything)
