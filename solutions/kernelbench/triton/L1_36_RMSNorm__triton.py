"""RMS norm over channels: a program holds all channels of some neighbouring pixels, so that all is read only once."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm(x, out, C, SPACE, eps, CHANNELS: tl.constexpr, PIXELS: tl.constexpr):
    """Norm PIXELS neighbouring pixels of one image."""
    tiles = tl.cdiv(SPACE, PIXELS)
    image = (tl.program_id(0) // tiles).to(tl.int64) * C * SPACE
    pixels = (tl.program_id(0) % tiles * PIXELS + tl.arange(0, PIXELS))[None, :]
    channels = tl.arange(0, CHANNELS)[:, None]
    place = image + channels.to(tl.int64) * SPACE + pixels
    inside = (channels < C) & (pixels < SPACE)
    value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(value * value, axis=0) / C
    result = value * tl.rsqrt(mean + eps)[None, :]
    tl.store(out + place, result.to(out.dtype.element_ty), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        C, space = x.shape[1], x[0, 0].numel()
        out = torch.empty_like(x)
        channels = triton.next_power_of_2(C)
        pixels = min(max(1, 8192 // channels), triton.next_power_of_2(space))
        grid = (x.shape[0] * triton.cdiv(space, pixels),)
        rms_norm[grid](x, out, C, space, self.eps, channels, pixels, num_warps=8)
        return out
