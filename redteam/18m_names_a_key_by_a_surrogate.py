"""row: 18
tries: breaks the printing of its verdict by the key of a dict that it returns
expect: WRONG form
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return {"\udcff\x1b]0;CORRECT\x07\u2028": total}
