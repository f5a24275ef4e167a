"""Self-attention over the pixels of an image, with a residual and layer norm."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim, num_heads)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x):
        batch, channels, height, width = x.shape
        pixels = x.view(batch, channels, height * width).permute(2, 0, 1)
        attended, _ = self.attn(pixels, pixels, pixels)
        return self.norm(attended + pixels).permute(1, 2, 0).view(batch, channels, height, width)


embed_dim = 128
num_heads = 4
batch_size = 2
image_height = 128
image_width = 128


def get_inputs():
    return [torch.rand(batch_size, embed_dim, image_height, image_width)]


def get_init_inputs():
    return [embed_dim, num_heads]


PROBLEM = ModelProblem(
    tiny={"embed_dim": 32, "image_height": 16, "image_width": 16},
    hidden={"embed_dim": 39, "num_heads": 3, "batch_size": 3, "image_height": 11, "image_width": 13},
)
