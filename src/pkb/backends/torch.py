"""Plain PyTorch: torch.distributed, symmetric memory, anything that needs no other compiler."""

from pkb.backends import Backend

BACKEND = Backend("torch")
