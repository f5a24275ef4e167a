"""Importing this gives Triton its driver, the C part of it compiled: ranks that are forked afterwards need not do that.

Nothing here touches a GPU.
"""

import contextlib

import triton
from triton.backends.nvidia.driver import CudaDriver

# Without a C compiler, say, a candidate that uses Triton hears the reason from Triton itself.
with contextlib.suppress(Exception):
    triton.runtime.driver.set_active(CudaDriver())
