"""Digests: every bit and its place count, and every device and layout agrees."""

import pytest
import torch

from pkb.protocol.digest import digest_all, digest_one

KEY = 0x1234_5678_9ABC_DEF0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8])
@pytest.mark.parametrize("count", [1, 7, 8, 1000])
def test_one_changed_byte_changes_it(dtype: torch.dtype, count: int) -> None:
    tensor = torch.arange(count).to(dtype)
    before = digest_one(tensor, KEY)
    assert digest_one(tensor.clone(), KEY) == before
    tensor.view(torch.uint8)[-1] ^= 1
    assert digest_one(tensor, KEY) != before


def test_places_keys_and_signs_count() -> None:
    tensor = torch.tensor([1.0, 2.0, 0.0, 3.0])
    assert digest_one(tensor, KEY) != digest_one(tensor.flip(0), KEY)
    assert digest_one(tensor, KEY) != digest_one(tensor, KEY + 1)
    assert digest_one(torch.zeros(4), KEY) != digest_one(-torch.zeros(4), KEY)


def test_layout_does_not_count() -> None:
    tensor = torch.randn(6, 10, generator=torch.Generator().manual_seed(1))
    assert digest_one(tensor.t().contiguous().t(), KEY) == digest_one(tensor, KEY)


def test_long_ones_and_those_inside_others_count_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.arange(1000, dtype=torch.uint8)
    whole, inner = digest_one(tensor, KEY), digest_one(tensor[3:900].clone(), KEY)
    monkeypatch.setattr("pkb.protocol.digest._AT_ONCE", 7)
    assert digest_one(tensor, KEY) == whole
    assert digest_one(tensor[3:900], KEY) == inner


def test_nothing_has_a_digest_too() -> None:
    assert digest_one(torch.empty(0), KEY) == 0


def test_many_at_once_are_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [torch.arange(count) for count in (9, 3, 9, 0, 3, 9, 40)]
    apart = [digest_one(tensor, KEY) for tensor in tensors]
    monkeypatch.setattr("pkb.protocol.digest._AT_ONCE", 20)
    assert digest_all(tensors, KEY) == apart
