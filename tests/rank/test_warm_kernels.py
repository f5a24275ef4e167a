"""What ranks on a GPU launch before they are ready runs on any device."""

import torch

from pkb.rank.warm_kernels import warm_up_kernels


def test_leaves_the_generators_of_others_alone() -> None:
    before = torch.get_rng_state()
    warm_up_kernels(torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)
