"""The screen reads a model as it reads a function."""

import pytest

from pkb.backends import find_backend
from pkb.screen import screen
from pkb.settings import Track

MODEL = """
import torch
import torch.nn as nn
import triton

@triton.jit
def kernel(x): pass

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.seen = {}

    def forward(self, x):
        BODY
        return kernel[(1,)](x, self.linear.weight)
"""


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ("pass", set()),
        ("x = torch.nn.functional.linear(x, self.linear.weight)", {"vendor-gemm"}),
        ("x = x @ self.linear.weight", {"vendor-gemm"}),
        ("x = self.seen.get(x.data_ptr(), x)", {"keys-by-address"}),
    ],
)
def test_what_a_forward_does_is_seen(body: str, rules: set[str]) -> None:
    source = MODEL.replace("BODY", body).encode()
    assert {finding.rule for finding in screen(source, find_backend("triton"), Track.SCRATCH)} == rules


def test_a_kernel_that_no_model_launches_is_for_show() -> None:
    source = MODEL.replace("BODY", "return x").replace("return kernel[(1,)](x, self.linear.weight)", "").encode()
    assert {finding.rule for finding in screen(source, find_backend("triton"))} == {"no-kernel", "never-launched"}
