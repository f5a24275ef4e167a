"""row: honest
tries: returns a view of a larger buffer, made in inference mode, by an object with a state of its own
expect: CORRECT
"""

import contextlib

import torch
import torch.distributed as dist


class Padded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.group = None

    @contextlib.contextmanager
    def padded(self, tensor):
        buffer = tensor.new_zeros(tensor.numel() + 96)
        yield buffer, buffer[32 : 32 + tensor.numel()].view(tensor.shape)

    @torch.inference_mode()
    def forward(self, tensor):
        if self.group is None:
            self.group = dist.new_group(range(dist.get_world_size()))
        with self.padded(tensor) as (_, inner):
            inner.copy_(tensor)
            dist.all_reduce(inner, group=self.group, async_op=True).wait()
            return inner


solution = Padded()
