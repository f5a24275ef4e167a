"""Shapes, inputs and costs of a training step of a two-layer perceptron with ReLU and Adam."""

import math

from pkb import link

BETA1, BETA2 = 0.85, 0.9


def local_rows(case):
    return -(-max(case.m, case.world) // case.world)


def outer_widths(case):
    """Return input and output width: the published ones up to N = 1024, growing with N beyond."""
    return max(16, min(case.n, 256), case.n // 4), max(8, case.n // 4)


def parameter_count(d_in, hidden, d_out):
    return hidden * (d_in + 1) + d_out * (hidden + 1)


def hidden_width(case):
    """Return the first width from N / 2 on for which the ranks' parts are equal, or None."""
    d_in, d_out = outer_widths(case)
    start = max(32, case.n // 2)
    fitting = (h for h in range(start, start + 1025) if parameter_count(d_in, h, d_out) % case.world == 0)
    return next(fitting, None)


def even_shape(case):
    """Return local rows and the three widths, for which the ranks' parts of the parameters are equal."""
    d_in, d_out = outer_widths(case)
    return local_rows(case), d_in, hidden_width(case), d_out


def whole(case, limit, *shape):
    return case.randint(-limit, limit + 1, *shape).to(case.dtype)


def batch_and_parameters(case, rows, d_in, hidden, d_out):
    """Draw X, y, W1, b1, W2, b2.

    X and W1 hold multiples of a power of two, b1 odd multiples of half their product: the inputs of the ReLU
    are computed exactly in any order, and none is so near zero that rounding could change its sign. The
    scale of the batch makes up for the mean over all entries, so that gradients are of order 0.3.
    """
    spread = 2.0 ** round(math.log2(math.sqrt(rows**0.5 * d_out) / 4))
    quantum = 2.0 ** -(2 + round(math.log2(d_in) / 2))
    return (
        whole(case, 3, rows, d_in) * spread,
        case.randn(rows, d_out, scale=2 * spread),
        whole(case, 7, hidden, d_in) * quantum,
        (whole(case, 7, hidden) + 0.5) * (quantum * spread),
        case.randn(d_out, hidden, scale=(hidden / 2) ** -0.5),
        case.randn(d_out),
    )


def half_steps(case, rows, d_in, d_out):
    """Draw X, which holds multiples of 1/2, and y."""
    return (case.randint(-4, 5, rows, d_in) / 2).to(case.dtype), case.randn(rows, d_out, scale=2.0)


def network(draws, d_in, hidden, d_out):
    """Draw W1, b1, W2, b2 for the X of `half_steps`, out of the rank's own draws or the shared ones."""
    # W1 holds multiples of `grain`, so that every product sum is a multiple of grain / 2 in any order; b1 moves it
    # by an odd multiple of grain / 4. No pre-activation comes near 0, where the derivative of ReLU jumps.
    grain = 2.0 ** -round(math.log2(2.6 * d_in**0.5))
    W1 = draws.randint(-3, 4, hidden, d_in) * grain
    b1 = (2 * draws.randint(-8, 8, hidden) + 1) * (grain / 4)
    W2 = draws.randn(d_out, hidden, scale=hidden**-0.5)
    return W1.to(draws.dtype), b1.to(draws.dtype), W2, draws.randn(d_out, scale=0.3)


def adam_state(case, part, rows, d_out):
    """Draw both moments of `part` parameters; return them with the learning rate, both decay rates, and eps."""
    # The size of a typical averaged gradient: moments of this size neither hide it nor vanish next to it.
    typical = 4 / (d_out * (rows * case.world) ** 0.5)
    first = case.randn(part, scale=0.15 * typical)
    second = case.rand(part, low=0.1 * typical**2, high=0.3 * typical**2)
    return first, second, 0.05, BETA1, BETA2, 0.2 * typical


def gradients_link(case, parameters, batch):
    """Return the bytes for the summed gradients of `parameters` parameters from `batch` local values of X and y."""
    # For few rows it is cheaper to gather the rows than the gradients.
    return link.all_gather(min(parameters, case.world * batch) * case.itemsize, case.world)
