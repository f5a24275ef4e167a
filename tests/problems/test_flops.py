"""Operations are counted as torch counts them, but for recurrent layers not step by step."""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from pkb.problems.flops import count_flops


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(kind: type[nn.RNNBase], batch_first: bool) -> None:
    with torch.device("meta"):
        layer = kind(input_size=12, hidden_size=10, num_layers=3, bidirectional=True, batch_first=batch_first)
        sequence = torch.empty(7, 5, 12)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        expected = layer(sequence)
    flops, found = count_flops(lambda: layer(sequence))
    assert flops == counter.get_total_flops()
    assert found[0].shape == expected[0].shape


def test_others() -> None:
    with torch.device("meta"):
        model, x = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), torch.empty(5, 4)
    flops, result = count_flops(lambda: model(x))
    assert (flops, result.shape) == (2 * 5 * (4 * 6 + 6 * 3), (5, 3))


def test_no_compiler_is_imported() -> None:
    check = "import sys, torch; from pkb.problems.flops import count_flops; x = torch.empty(2, 2, device='meta')\n"
    check += "print(count_flops(lambda: x @ x)[0], 'torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout == "16.0 False\n"
