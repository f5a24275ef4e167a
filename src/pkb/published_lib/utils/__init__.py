"""Names of the public ParallelKernelBench, for candidates that were written for it."""
