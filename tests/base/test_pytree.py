import pytest
import torch

from pkb.base.pytree import (
    describe_difference,
    describe_kind,
    is_plain,
    iterate_tensors,
    list_form_tensors,
    map_tensors,
    rebuild,
    take_apart,
)


def test_results_survive_description() -> None:
    result = (torch.ones(2), {"a": [None, 3, torch.zeros(1)]}, True, "s")
    leaves: list[torch.Tensor] = []
    form = take_apart(result, leaves)
    assert len(leaves) == 2
    assert list_form_tensors(form) == [0, 1]
    again = rebuild(form, leaves)
    assert (again[0] is leaves[0], again[1]["a"][:2], again[2:]) == (True, [None, 3], [True, "s"])


@pytest.mark.parametrize(
    "form",
    [{"tensor": True}, {"tensor": 0.0}, {"x": 1}, 3, None, {"dict": 1}, [{"tensor": 0, "b": 1}], {"value": []}, {}],
)
def test_forged_forms_are_refused(form: object) -> None:
    with pytest.raises(ValueError, match="form"):
        list_form_tensors(form)


@pytest.mark.parametrize(
    ("expected", "actual", "says"),
    [
        (torch.ones(1), torch.zeros(3), None),
        ((torch.ones(1), 2), [torch.ones(1), 2], None),
        (torch.ones(1), None, "returned None where the reference returns a tensor"),
        (
            (torch.ones(1),) * 2,
            (torch.ones(1),),
            "returned a sequence of 1 where the reference returns a sequence of 2",
        ),
        ({"a": 1}, {"b": 1}, "keys b where the reference returns a dict with keys a"),
        ((1, 2), (1, 3), "returned 3 where the reference returns 2"),
        (None, object(), "type object"),
    ],
)
def test_differences_in_words(expected: object, actual: object, says: str | None) -> None:
    words = describe_difference(take_apart(expected, []), take_apart(actual, []))
    assert words is None if says is None else says in str(words)


def test_modules_and_nests_are_walked() -> None:
    layer = torch.nn.Linear(2, 3)
    assert len(list(iterate_tensors([layer, (torch.ones(1), {"x": torch.ones(1)}), None, 4]))) == 4
    assert map_tensors([torch.ones(1), None], lambda t: t + 1)[0].item() == 2


class Disguise(str):
    """A name that passes for another one when an attribute is looked up."""

    def __hash__(self) -> int:
        return hash("detach")

    def __eq__(self, other: object) -> bool:
        return other == "detach"


class Hidden(dict[str, object]):
    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(())


def test_notes_on_a_tensor_do_not_matter_but_methods_of_its_own_do() -> None:
    plain, noted, shadowed, disguised, hidden = (torch.ones(2) for _ in range(5))
    noted._dynamo_propagated_dynamic_indices, noted.note = {0}, print  # type: ignore[attr-defined]
    shadowed.detach = plain.detach  # type: ignore[method-assign]
    disguised.__dict__[Disguise("harmless")] = plain.detach
    hidden.__dict__ = Hidden(detach=plain.detach)
    assert is_plain(plain)
    assert is_plain(noted)
    assert describe_kind(shadowed) == "Tensor with its own detach"
    assert describe_kind(disguised) == "Tensor with its own Disguise"
    assert describe_kind(hidden) == "Tensor with its own __dict__"
    assert describe_kind(torch.nested.nested_tensor([plain])) == "nested Tensor"
