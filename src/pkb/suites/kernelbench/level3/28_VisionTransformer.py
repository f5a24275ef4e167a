"""A vision transformer that attends over the batch: what it reads, the class token, never meets a patch.

The encoder takes sequences first and is given batches first. So the output is the same for every image and in every
row; it changes with the weights alone.
"""

import torch
import torch.nn as nn

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(
        self,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        channels=3,
        dropout=0.1,
        emb_dropout=0.1,
    ):
        super().__init__()
        self.patch_size = patch_size
        num_patches = (image_size // patch_size) ** 2
        self.pos_embedding = nn.Parameter(torch.randn(1, num_patches + 1, dim))
        self.patch_to_embedding = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        layer = nn.TransformerEncoderLayer(dim, heads, dim_feedforward=mlp_dim, dropout=dropout)
        self.transformer = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.mlp_head = nn.Sequential(
            nn.Linear(dim, mlp_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_dim, num_classes),
        )

    def forward(self, img):
        batch, channels = img.shape[:2]
        side = self.patch_size
        x = img.unfold(2, side, side).unfold(3, side, side).reshape(batch, -1, side * side * channels)
        x = torch.cat([self.cls_token.expand(batch, -1, -1), self.patch_to_embedding(x)], dim=1)
        x = self.transformer(self.dropout(x + self.pos_embedding))
        return self.mlp_head(x[:, 0])


batch_size = 2
image_size = 224
patch_size = 16
num_classes = 10
dim = 512
depth = 6
heads = 8
mlp_dim = 2048
channels = 3
dropout = 0.0
emb_dropout = 0.0


def get_inputs():
    return [torch.rand(batch_size, channels, image_size, image_size)]


def get_init_inputs():
    return [image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, channels, dropout, emb_dropout]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 2,
        "image_size": 32,
        "patch_size": 8,
        "num_classes": 40,
        "dim": 64,
        "depth": 3,
        "heads": 4,
        "mlp_dim": 96,
    },
    hidden={
        "batch_size": 3,
        "image_size": 25,
        "patch_size": 5,
        "num_classes": 37,
        "dim": 45,
        "depth": 2,
        "heads": 3,
        "mlp_dim": 71,
        "channels": 2,
    },
    state={"pos_embedding": Normal(0.0, 1.0)},
    degenerate="attention runs over the batch axis, and only the class token is read: the same for every image",
)
