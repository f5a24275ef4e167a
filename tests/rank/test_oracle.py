import torch

from pkb.rank.oracle import compute_in_float64, widen


def test_requests_for_narrow_floats_become_float64() -> None:
    x = widen((torch.tensor([1.0, 1e-12]).bfloat16(),))[0]
    with compute_in_float64():
        results = [x.float(), x.to(torch.float32), x.to(dtype=torch.bfloat16), x.half(), torch.zeros(2)]
        results.append(torch.empty_like(x, dtype=torch.float32))
    assert {result.dtype for result in results} == {torch.float64}
    assert torch.zeros(1).dtype is torch.float32


def test_integers_float8_and_modules() -> None:
    layer = torch.nn.Linear(2, 2)
    ids, wide, nothing = widen((torch.tensor([1]), layer, None))
    assert (ids.dtype, wide.weight.dtype, nothing) == (torch.int64, torch.float64, None)
    with compute_in_float64():
        assert torch.ones(2).to(torch.float8_e4m3fn).dtype is torch.float8_e4m3fn
