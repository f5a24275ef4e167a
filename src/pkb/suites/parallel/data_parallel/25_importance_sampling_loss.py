"""Policy-gradient loss with importance ratios, and five metrics, over ranks that hold different tokens.

Per token, in the dtype of the run: ce = cross entropy of hidden @ weight.T, logprob = -ce, delta = logprob - old
logprob clamped to [-20, 20], ratio = exp(delta), loss = -ratio x advantage. Tokens whose label is `ignore_index` have
logprob and loss 0 and count nowhere. Local sums are rounded to the run's dtype, summed over all ranks and divided in
float32 by the number of valid tokens of all ranks. Returns the mean loss (float32), None, the logprobs, the losses
per token, and in float32: mean, minimum and maximum of the ratio, mean of ratio - delta - 1, mean of ce.
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link


def all_reduced(x: torch.Tensor, op=dist.ReduceOp.SUM) -> torch.Tensor:
    dist.all_reduce(x, op)
    return x


def solution(
    hidden_states: torch.Tensor,
    weight: torch.Tensor,
    labels: torch.Tensor,
    old_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    ignore_index: int = -100,
) -> tuple[torch.Tensor, None, torch.Tensor, torch.Tensor, torch.Tensor]:
    targets = labels.reshape(-1)
    valid = targets != ignore_index
    logits = hidden_states.reshape(-1, hidden_states.shape[-1]) @ weight.T
    ce = F.cross_entropy(logits, targets, ignore_index=ignore_index, reduction="none")
    logprobs = -ce
    tokens = all_reduced(valid.sum(dtype=torch.float32)).clamp(min=1)

    delta = (logprobs - old_logprobs.reshape(-1)).clamp(-20, 20).masked_fill(~valid, 0)
    ratio = delta.exp()
    gain = (ratio * advantages.reshape(-1)).masked_fill(~valid, 0)
    loss = all_reduced((-gain).sum()) / tokens
    # In training the surrogate brings the gradient; it leaves the value as it is.
    surrogate = (gain * ce).sum() / tokens
    loss = loss + surrogate - surrogate.detach()

    def mean(x: torch.Tensor) -> torch.Tensor:
        return all_reduced(x.masked_fill(~valid, 0).sum()) / tokens

    metrics = [
        mean(ratio),
        all_reduced(ratio.masked_fill(~valid, torch.inf).amin(), dist.ReduceOp.MIN),
        all_reduced(ratio.masked_fill(~valid, -torch.inf).amax(), dist.ReduceOp.MAX),
        mean(ratio - delta - 1),
        mean(ce),
    ]
    metrics = torch.stack([metric.to(torch.float32) for metric in metrics])
    return loss, None, logprobs.reshape(labels.shape), -gain.reshape(labels.shape), metrics


PROBLEM = Problem(
    category="Data Parallel",
    source="importance-sampling policy loss of xorl (an RL trainer derived from VeOmni)",
    sizes={"tiny": Size(32, 16), "paper": Size(1024, 1024), "large": Size(16384, 8192)},
    deviations={
        "values": (
            "one `weight` for all ranks, where the published ranks have one each; hidden states lie near the rows of "
            "their labels, as for tokens that a policy has sampled, so that ratios are near 1 instead of saturated"
        ),
        "variants": "some labels are ignored, in one trial all of a rank's; in two trials ratios lie beyond the clamp",
    },
)

IGNORED = -100
LOW_TRIAL, HIGH_TRIAL, EMPTY_TRIAL = 1, 2, 3
BEYOND_THE_CLAMP = 25.0


def inputs(case):
    hidden, weight, labels = likely_tokens(case)
    logprobs = -F.cross_entropy(hidden.float() @ weight.float().T, labels, reduction="none")
    # Each rank has a drift and a reward level of its own: leaving one out changes every mean.
    drift, level = case.rand(2, low=-0.7, high=0.7, dtype=torch.float32)
    old = logprobs - drift - case.randn(case.m, scale=0.5, dtype=torch.float32) - outliers(case)
    # Mostly positive, so that the sum does not cancel.
    advantages = level.exp() * (1 + case.randn(case.m, scale=0.5, dtype=torch.float32))
    return hidden, weight, labels.masked_fill(ignored(case), IGNORED), old.to(case.dtype), advantages.to(case.dtype)


def vocabulary(case):
    return min(32000, 32 * case.m)


def likely_tokens(case):
    """Hidden states near the rows of their labels, as for tokens that the policy itself has sampled.

    A feature that all tokens share shifts the logits so that those of the labels lie near zero, where 16 bits
    still resolve differences between log-probabilities.
    """
    depth = math.log(vocabulary(case))
    weight = F.normalize(case.shared.randn(vocabulary(case), case.n, dtype=torch.float32), dim=1)
    labels = case.randint(0, vocabulary(case), case.m)
    hidden = case.randn(case.m, case.n, dtype=torch.float32) + depth * weight[labels]
    weight[:, 0], hidden[:, 0] = -depth, 1.0
    return hidden.to(case.dtype), weight.to(case.dtype), labels


def outliers(case):
    """How far a few tokens' deltas are moved past the clamp. exp(20) is too large for float16."""
    far = case.randint(0, 6, case.m) == 0
    if case.trial == LOW_TRIAL or (case.trial == HIGH_TRIAL and case.dtype is torch.float16):
        return far * -BEYOND_THE_CLAMP
    return far * (BEYOND_THE_CLAMP if case.trial == HIGH_TRIAL else 0.0)


def ignored(case):
    """Between a tenth and three tenths of the tokens, and in one trial all of the last rank's."""
    if case.trial == EMPTY_TRIAL and case.world > 1 and case.rank == case.world - 1:
        return torch.ones(case.m, dtype=torch.bool, device=case.device)
    share = case.rand(1, low=0.1, high=0.3, dtype=torch.float32)
    return case.rand(case.m, dtype=torch.float32) < share


def cost(case):
    tokens, width, s = case.m, case.n, case.itemsize
    return Cost(
        # The product, then an exponential and a sum for each logit.
        flops=2 * tokens * width * vocabulary(case) + 2 * tokens * vocabulary(case),
        hbm=(tokens + vocabulary(case)) * width * s + tokens * (8 + 4 * s),
        link=link.all_reduce(4 + 6 * s, case.world),
    )


def divided_by_own_tokens(hidden_states, weight, labels, old_logprobs, advantages, ignore_index=-100):
    loss, none, logprobs, losses, metrics = solution(
        hidden_states, weight, labels, old_logprobs, advantages, ignore_index
    )
    own = (labels != ignore_index).sum(dtype=torch.float32)
    factor = all_reduced(own.clone()) / (own * dist.get_world_size()).clamp(min=1)
    return loss * factor, none, logprobs, losses, metrics * metrics.new_tensor([factor, 1, 1, factor, factor])


def extremes_of_own_tokens(hidden_states, weight, labels, old_logprobs, advantages, ignore_index=-100):
    loss, none, logprobs, losses, metrics = solution(
        hidden_states, weight, labels, old_logprobs, advantages, ignore_index
    )
    delta = (logprobs - old_logprobs).clamp(-20, 20)[labels != ignore_index].float()
    if delta.numel():
        metrics[1], metrics[2] = delta.min().exp(), delta.max().exp()
    return loss, none, logprobs, losses, metrics


def ignored_tokens_counted(hidden_states, weight, labels, *rest):
    return solution(hidden_states, weight, labels.clamp(min=0), *rest)


MUTANTS = {
    "divided_by_own_tokens": divided_by_own_tokens,
    "extremes_of_own_tokens": extremes_of_own_tokens,
    "ignored_tokens_counted": ignored_tokens_counted,
}
