"""row: 13
tries: has a helper process do the work, under the name of torch.compile's helpers
expect: REJECTED starts-processes
unscreened: CHEAT left-process
"""

import subprocess
import sys

import torch.distributed as dist

subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "torch/_inductor/compile_worker"])


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
