"""Sound weights, apart from any judgement."""

import torch
from torch import nn

from pkb.problems.sound_weights import Weight, fill_weights, list_weights


class Tied(nn.Module):
    def __init__(self, tied: bool = True):
        super().__init__()
        self.table = nn.Embedding(7, 5)
        self.head = nn.Linear(5, 7, bias=False)
        if tied:
            self.head.weight = self.table.weight


def test_a_shared_weight_has_the_same_values_under_all_its_names() -> None:
    told = [weight.to_message() for weight in list_weights(Tied(), {})]
    assert [entry[:2] for entry in told] == [["table.weight", "table.weight"], ["head.weight", "table.weight"]]
    apart = Tied(tied=False)
    fill_weights(apart, [Weight.from_message(entry) for entry in told], seed=3)
    assert torch.equal(apart.table.weight, apart.head.weight)


def test_weights_of_the_same_shape_differ() -> None:
    model = Tied(tied=False)
    fill_weights(model, list_weights(model, {}), seed=3)
    assert not torch.equal(model.table.weight, model.head.weight)
