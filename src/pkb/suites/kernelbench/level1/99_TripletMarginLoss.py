"""Mean triplet loss: how much nearer, by a margin, an anchor should be to its positive than to its negative."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin)


batch_size = 32768
dim = 8192
margin = 1.0


def get_inputs():
    scale = torch.rand(())
    return [scale * torch.rand(batch_size, dim), torch.rand(batch_size, dim), torch.rand(batch_size, dim)]


def get_init_inputs():
    return [margin]


def inputs(case):
    # Distances from 0 to 4: in some rows the margin is met, in others it is not.
    anchor = case.randn(batch_size, dim)
    near = case.rand(batch_size, 1, high=4.0) * case.randn(batch_size, dim, scale=dim**-0.5)
    far = case.rand(batch_size, 1, high=4.0) * case.randn(batch_size, dim, scale=dim**-0.5)
    return [anchor, anchor + near, anchor + far]


PROBLEM = ModelProblem(tiny={"batch_size": 24, "dim": 320}, hidden={"batch_size": 7, "dim": 211, "margin": 0.7})
