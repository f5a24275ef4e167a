"""Swin-MLP: window by window, linear maps over positions take the place of attention.

Odd blocks pad the tokens by zeros so that their windows lie across those of even blocks. Dropout, stochastic depth and
checkpointing are arguments without effect.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


def partition(x, size):
    """Windows [windows, size, size, channels] of [batch, height, width, channels]."""
    batch, height, width, channels = x.shape
    x = x.view(batch, height // size, size, width // size, size, channels)
    return x.transpose(2, 3).reshape(-1, size, size, channels)


def unpartition(windows, size, height, width):
    channels = windows.shape[-1]
    x = windows.view(-1, height // size, width // size, size, size, channels)
    return x.transpose(2, 3).reshape(-1, height, width, channels)


class Mlp(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.fc1 = nn.Linear(channels, hidden)
        self.fc2 = nn.Linear(hidden, channels)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, channels, side, heads, window, shift, mlp_ratio, norm_layer):
        super().__init__()
        self.side, self.heads, self.window, self.shift = side, heads, window, shift
        self.norm1 = norm_layer(channels)
        positions = heads * window * window
        self.spatial_mlp = nn.Conv1d(positions, positions, kernel_size=1, groups=heads)
        self.norm2 = norm_layer(channels)
        self.mlp = Mlp(channels, int(channels * mlp_ratio))

    def mix_windows(self, x):
        """Each head maps the positions of a window to each other, for its share of the channels."""
        windows, _, _, channels = x.shape
        positions, share = self.window * self.window, channels // self.heads
        x = x.view(windows, positions, self.heads, share).transpose(1, 2)
        x = self.spatial_mlp(x.reshape(windows, self.heads * positions, share))
        x = x.view(windows, self.heads, positions, share).transpose(1, 2)
        return x.reshape(windows, self.window, self.window, channels)

    def forward(self, x):
        batch, tokens, channels = x.shape
        grid = self.norm1(x).view(batch, self.side, self.side, channels)
        before, after = self.window - self.shift, self.shift
        if self.shift > 0:
            grid = F.pad(grid, (0, 0, before, after, before, after))
        padded = grid.shape[1]
        grid = unpartition(self.mix_windows(partition(grid, self.window)), self.window, padded, padded)
        if self.shift > 0:
            grid = grid[:, before:-after, before:-after]
        x = x + grid.reshape(batch, tokens, channels)
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, side, channels, norm_layer):
        super().__init__()
        self.side = side
        self.reduction = nn.Linear(4 * channels, 2 * channels, bias=False)
        self.norm = norm_layer(4 * channels)

    def forward(self, x):
        batch, _, channels = x.shape
        x = x.view(batch, self.side, self.side, channels)
        x = torch.cat([x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)], dim=-1)
        return self.reduction(self.norm(x.view(batch, -1, 4 * channels)))


class Stage(nn.Module):
    def __init__(self, channels, side, depth, heads, window_size, mlp_ratio, norm_layer, last):
        super().__init__()
        window = min(window_size, side)
        odd_shift = window_size // 2 if side > window_size else 0
        self.blocks = nn.ModuleList(
            Block(channels, side, heads, window, odd_shift * (i % 2), mlp_ratio, norm_layer) for i in range(depth)
        )
        self.downsample = None if last else PatchMerging(side, channels, norm_layer)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x if self.downsample is None else self.downsample(x)


class PatchEmbed(nn.Module):
    def __init__(self, patch_size, in_chans, embed_dim, norm_layer):
        super().__init__()
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)
        self.norm = norm_layer(embed_dim) if norm_layer is not None else nn.Identity()

    def forward(self, x):
        return self.norm(self.proj(x).flatten(2).transpose(1, 2))


class Model(nn.Module):
    def __init__(
        self,
        img_size=224,
        patch_size=4,
        in_chans=3,
        num_classes=1000,
        embed_dim=96,
        depths=(2, 2, 6, 2),
        num_heads=(3, 6, 12, 24),
        window_size=7,
        mlp_ratio=4.0,
        drop_rate=0.0,
        drop_path_rate=0.1,
        norm_layer=nn.LayerNorm,
        patch_norm=True,
        use_checkpoint=False,
        **kwargs,
    ):
        super().__init__()
        self.patch_embed = PatchEmbed(patch_size, in_chans, embed_dim, norm_layer if patch_norm else None)
        self.layers = nn.ModuleList(
            Stage(
                embed_dim * 2**i,
                img_size // patch_size // 2**i,
                depth,
                heads,
                window_size,
                mlp_ratio,
                norm_layer,
                last=i == len(depths) - 1,
            )
            for i, (depth, heads) in enumerate(zip(depths, num_heads, strict=True))
        )
        channels = embed_dim * 2 ** (len(depths) - 1)
        self.norm = norm_layer(channels)
        self.head = nn.Linear(channels, num_classes)

    def forward(self, x):
        x = self.patch_embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(dim=1))


batch_size = 10
image_size = 224


def get_inputs():
    return [torch.rand(batch_size, 3, image_size, image_size)]


def get_init_inputs():
    return []


# The constructor's defaults fix the image: only the batch can shrink.
PROBLEM = ModelProblem(tiny={"batch_size": 2}, hidden={"batch_size": 3})
