"""Swin Transformer V2: cosine attention in shifted windows, with a learned bias for relative positions.

Normalisation comes after attention and after the MLP. Dropout, stochastic depth and checkpointing are arguments without
effect.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


def partition(x, size):
    """Windows [windows, size * size, channels] of [batch, height, width, channels]."""
    batch, height, width, channels = x.shape
    x = x.view(batch, height // size, size, width // size, size, channels)
    return x.transpose(2, 3).reshape(-1, size * size, channels)


def unpartition(windows, size, side):
    channels = windows.shape[-1]
    x = windows.view(-1, side // size, side // size, size, size, channels)
    return x.transpose(2, 3).reshape(-1, side, side, channels)


def relative_coordinates(window, pretrained_window):
    """Offsets between two positions of a window on a logarithmic scale: [1, 2w-1, 2w-1, 2]."""
    offsets = torch.arange(-(window - 1), window, dtype=torch.float32)
    table = torch.stack(torch.meshgrid(offsets, offsets, indexing="ij"), dim=-1).unsqueeze(0)
    table = 8 * table / ((pretrained_window or window) - 1)
    return torch.sign(table) * torch.log2(table.abs() + 1) / math.log2(8)


def relative_index(window):
    """Where in the flattened table of offsets each pair of positions finds its own: [w*w, w*w]."""
    places = torch.arange(window)
    rows, columns = (t.flatten() for t in torch.meshgrid(places, places, indexing="ij"))
    down = rows[:, None] - rows[None, :] + window - 1
    across = columns[:, None] - columns[None, :] + window - 1
    return down * (2 * window - 1) + across


def shift_mask(side, window, shift):
    """-100 between positions that share a window only because the grid was rolled."""
    bands = torch.zeros(side)
    bands[side - window :] = 1
    bands[side - shift :] = 2
    regions = 3 * bands[:, None] + bands[None, :]
    regions = partition(regions.view(1, side, side, 1), window).squeeze(-1)
    return torch.where(regions[:, :, None] == regions[:, None, :], 0.0, -100.0)


class Mlp(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.fc1 = nn.Linear(channels, hidden)
        self.fc2 = nn.Linear(hidden, channels)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class WindowAttention(nn.Module):
    def __init__(self, channels, window, heads, qkv_bias, pretrained_window):
        super().__init__()
        self.heads = heads
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones(heads, 1, 1)))
        self.cpb_mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(), nn.Linear(512, heads, bias=False))
        self.register_buffer("relative_coords_table", relative_coordinates(window, pretrained_window))
        self.register_buffer("relative_position_index", relative_index(window))
        self.qkv = nn.Linear(channels, 3 * channels, bias=False)
        self.q_bias = nn.Parameter(torch.zeros(channels)) if qkv_bias else None
        self.v_bias = nn.Parameter(torch.zeros(channels)) if qkv_bias else None
        self.proj = nn.Linear(channels, channels)

    def position_bias(self):
        positions = len(self.relative_position_index)
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.heads)
        bias = table[self.relative_position_index.view(-1)].view(positions, positions, self.heads)
        return 16 * torch.sigmoid(bias.permute(2, 0, 1))

    def forward(self, x, mask):
        windows, positions, channels = x.shape
        bias = None
        if self.q_bias is not None:
            bias = torch.cat([self.q_bias, torch.zeros_like(self.v_bias), self.v_bias])
        qkv = F.linear(x, self.qkv.weight, bias)
        q, k, v = qkv.view(windows, positions, 3, self.heads, channels // self.heads).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * torch.clamp(self.logit_scale, max=math.log(100)).exp() + self.position_bias()
        if mask is not None:
            scores = scores.view(-1, len(mask), self.heads, positions, positions) + mask.unsqueeze(1)
            scores = scores.view(windows, self.heads, positions, positions)
        attended = torch.softmax(scores, dim=-1) @ v
        return self.proj(attended.transpose(1, 2).reshape(windows, positions, channels))


class Block(nn.Module):
    def __init__(self, channels, side, heads, window, shift, mlp_ratio, qkv_bias, norm_layer, pretrained_window):
        super().__init__()
        self.side, self.window, self.shift = side, window, shift
        self.norm1 = norm_layer(channels)
        self.attn = WindowAttention(channels, window, heads, qkv_bias, pretrained_window)
        self.norm2 = norm_layer(channels)
        self.mlp = Mlp(channels, int(channels * mlp_ratio))
        self.register_buffer("attn_mask", shift_mask(side, window, shift) if shift > 0 else None)

    def forward(self, x):
        batch, tokens, channels = x.shape
        grid = x.view(batch, self.side, self.side, channels)
        grid = torch.roll(grid, (-self.shift, -self.shift), dims=(1, 2))
        windows = self.attn(partition(grid, self.window), self.attn_mask)
        grid = unpartition(windows, self.window, self.side)
        grid = torch.roll(grid, (self.shift, self.shift), dims=(1, 2))
        x = x + self.norm1(grid.reshape(batch, tokens, channels))
        return x + self.norm2(self.mlp(x))


class PatchMerging(nn.Module):
    def __init__(self, side, channels, norm_layer):
        super().__init__()
        self.side = side
        self.reduction = nn.Linear(4 * channels, 2 * channels, bias=False)
        self.norm = norm_layer(2 * channels)

    def forward(self, x):
        batch, _, channels = x.shape
        x = x.view(batch, self.side, self.side, channels)
        x = torch.cat([x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)], dim=-1)
        return self.norm(self.reduction(x.view(batch, -1, 4 * channels)))


class Stage(nn.Module):
    def __init__(self, channels, side, depth, heads, window_size, last, norm_layer, **options):
        super().__init__()
        window = min(window_size, side)
        odd_shift = window_size // 2 if side > window_size else 0
        self.blocks = nn.ModuleList(
            Block(channels, side, heads, window, odd_shift * (i % 2), norm_layer=norm_layer, **options)
            for i in range(depth)
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
        qkv_bias=True,
        drop_rate=0.0,
        attn_drop_rate=0.0,
        drop_path_rate=0.1,
        norm_layer=nn.LayerNorm,
        patch_norm=True,
        use_checkpoint=False,
        pretrained_window_sizes=(0, 0, 0, 0),
        **kwargs,
    ):
        super().__init__()
        self.patch_embed = PatchEmbed(patch_size, in_chans, embed_dim, norm_layer if patch_norm else None)
        self.layers = nn.ModuleList(
            Stage(
                embed_dim * 2**i,
                img_size // patch_size // 2**i,
                depths[i],
                num_heads[i],
                window_size,
                last=i == len(depths) - 1,
                norm_layer=norm_layer,
                mlp_ratio=mlp_ratio,
                qkv_bias=qkv_bias,
                pretrained_window=pretrained_window_sizes[i],
            )
            for i in range(len(depths))
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
PROBLEM = ModelProblem(
    tiny={"batch_size": 2},
    hidden={"batch_size": 3},
    # The scale on both sides of its bound, and biases small enough for tokens to stay apart through all blocks.
    state={
        "*.logit_scale": Normal(3.0, 1.5),
        "*.q_bias": Normal(0.0, 1.0),
        "*.cpb_mlp.0.bias": Normal(0.0, 0.5),
        "layers.*bias": Normal(0.0, 0.2),
    },
)
