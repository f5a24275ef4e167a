"""Encoder layers over two tokens: a class token and the whole image, folded into one."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(
        self,
        num_classes,
        embed_dim=512,
        num_heads=8,
        num_layers=6,
        mlp_ratio=4.0,
        patch_size=4,
        in_channels=3,
        image_size=32,
    ):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)
        num_patches = (image_size // patch_size) ** 2
        self.linear_proj = nn.Linear(embed_dim * num_patches, embed_dim)
        self.transformer_layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                embed_dim, num_heads, dim_feedforward=int(embed_dim * mlp_ratio), dropout=0.0, batch_first=True
            )
            for _ in range(num_layers)
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.fc_out = nn.Linear(embed_dim, num_classes)

    def forward(self, x):
        image = self.linear_proj(torch.flatten(self.conv1(x), 1))
        tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), image.unsqueeze(1)], dim=1)
        for layer in self.transformer_layers:
            tokens = layer(tokens)
        return self.fc_out(tokens[:, 0])


batch_size = 10
image_size = 32
embed_dim = 128
in_channels = 3
num_heads = 4
num_classes = 1000


def get_inputs():
    return [torch.rand(batch_size, in_channels, image_size, image_size)]


def get_init_inputs():
    return [num_classes, embed_dim, num_heads]


PROBLEM = ModelProblem(
    tiny={"batch_size": 8, "embed_dim": 64, "num_classes": 100},
    hidden={"batch_size": 5, "embed_dim": 51, "num_heads": 3, "num_classes": 61},
)
