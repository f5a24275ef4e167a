"""Inputs and costs of collectives on values that are rounded to float8 (e4m3) with delayed scaling."""

# torch is imported on use: `pkb list` computes costs without it.
from pkb.problems.cost import Link

HISTORY = 16
LARGEST_CODE = 448.0


def elements(case):
    """Return the shard length: the published one up to M = 1024, growing with M beyond. N is not used."""
    return max(min(64 * case.m, 4096), 4 * case.m)


def draw_history(case, amax):
    """Draw a history in which, by trial, this call's maximum, the oldest or another entry is largest, or all tiny."""
    import torch

    history = amax * case.rand(HISTORY, low=0.3, high=0.9, dtype=torch.float32)
    match case.trial:
        case 1:
            history[0] = 2.7 * amax
        case 2:
            history[1 + case.rank % (HISTORY - 1)] = 1.7 * amax
        case 3:
            history[-1] = (0.5 + case.rank % 2) * amax
        case 4:
            history[:] = 1e-8
    return history.to(torch.bfloat16)


def pull_from_ties(values, scale):
    """Move values towards their codes: midway between two codes the last bit of a division would decide."""
    import torch

    steps = values / scale
    codes = steps.to(torch.float8_e4m3fn).to(torch.float32)
    return (codes + 0.8 * (steps - codes)) * scale


def values_and_history(case, count):
    """Draw `count` values, and the rank's last absolute maxima."""
    import torch

    # Ranks differ in size by no power of two, which float8 would not notice. The largest value is one that all
    # dtypes can hold, so that the history stores it as it is.
    size = 0.6 + 0.37 * ((case.rank + case.trial) % 4)
    amax = torch.tensor(4.4 * size).to(torch.bfloat16).item()
    history = draw_history(case, amax)
    scale = max(history[1:].max().item(), amax) / LARGEST_CODE
    values = case.randn(count, scale=size, dtype=torch.float32).clamp(-0.97 * amax, 0.97 * amax)
    values = pull_from_ties(values, scale)
    values[case.integer(0, count)] = amax * (2 * case.integer(0, 2) - 1)
    return values.to(case.dtype), history


def codes_link(case):
    """Return the bytes of a shard to and from each other rank: codes of one byte and a float32 scale suffice."""
    sent = (case.world - 1) * (elements(case) + 4)
    return Link(egress=sent, ingress=sent)
