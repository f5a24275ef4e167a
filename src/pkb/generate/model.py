"""A language model behind any provider, through litellm: send requests, retry them, and add up what they cost."""

import asyncio
import importlib
import logging
import os
import random
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

from pkb.errors import UsageError
from pkb.generate.redact import redact_secrets

Message = Mapping[str, str]
"""A message's role and content."""

_RETRYABLE = (408, 409, 425, 429)
_FATAL = (401, 403, 404)
"""Status codes of a wrong key, account or model: no other request will do better."""
_MAX_WAIT_S = 600.0


class _NoChoice(Exception):
    status_code = 502


class AskFailed(Exception):
    """The provider did not answer this request; another one may succeed."""


@dataclass(frozen=True)
class Price:
    """A model's price in dollars per token."""

    prompt: float
    completion: float

    def compute_cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return self.prompt * prompt_tokens + self.completion * completion_tokens


@dataclass(frozen=True)
class ModelSettings:
    """What an answer depends on, in addition to the prompt. None leaves the choice to the provider."""

    model: str
    """The model as litellm names it: provider/name."""
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    """The seed of the first sample; further samples count up from it."""
    max_tokens: int = 16384
    reasoning_effort: str | None = None


@dataclass(frozen=True)
class RetryPolicy:
    """How long one request may take, and how often it is retried."""

    timeout_s: float = 600.0
    retries: int = 5
    first_wait_s: float = 1.0
    """Seconds before the first retry, doubled for each further one and shortened by a random part. A provider's
    Retry-After wins where it is longer."""


@dataclass(frozen=True)
class ModelAnswer:
    text: str
    finish_reason: str | None
    model: str
    """The model as the provider names it."""
    tokens: dict[str, int]
    cost_usd: float | None
    seconds: float
    """Seconds from the first try to the answer."""
    retried: list[str] = field(default_factory=list)
    """The errors of earlier tries."""


class Model:
    def __init__(
        self,
        settings: ModelSettings,
        retry: RetryPolicy | None = None,
        api_base: str | None = None,
        price: Price | None = None,
    ):
        _import_litellm()
        self.settings, self.retry = settings, retry or RetryPolicy()
        self.api_base = api_base
        self.price = _look_up_price(settings.model) if price is None else price
        """None where the price is unknown."""
        self._own_price = price
        self._counted: dict[str, int] = {}

    async def ask(self, messages: Sequence[Message], number: int = 0) -> ModelAnswer:
        """Return the answer to a conversation. `number` tells samples of one prompt apart.

        Raises AskFailed when this request has failed for good, and UsageError when all other requests would fail too.
        """
        started, retried = time.monotonic(), list[str]()
        response = await _request_with_retries(lambda: self._request(messages, number), self.retry, retried)
        choice = response.choices[0]
        refusal = (choice.message.provider_specific_fields or {}).get("refusal")
        text = choice.message.content or refusal or ""
        tokens = self._count_usage(response.usage, messages, text)
        return ModelAnswer(
            text=text,
            finish_reason="refusal" if refusal else choice.finish_reason,
            model=response.model or self.settings.model,
            tokens=tokens,
            cost_usd=self._compute_cost(response, tokens),
            seconds=round(time.monotonic() - started, 3),
            retried=retried,
        )

    def count_tokens(self, text: str) -> int:
        """Estimate how many tokens a text has."""
        if text not in self._counted:
            self._counted[text] = int(_import_litellm().token_counter(model=self.settings.model, text=text))
        return self._counted[text]

    def compute_max_cost(self, prompt: str) -> float:
        """Return the most that one answer can cost, in dollars. Raises UsageError where the price is unknown."""
        if self.price is None:
            raise UsageError(
                f"no price is known for {self.settings.model}; set --price-in and --price-out, in dollars per million "
                "tokens"
            )
        return self.price.compute_cost(self.count_tokens(prompt), self.settings.max_tokens)

    async def _request(self, messages: Sequence[Message], number: int) -> Any:
        chosen: dict[str, Any] = {"temperature": self.settings.temperature, "top_p": self.settings.top_p}
        chosen |= {"reasoning_effort": self.settings.reasoning_effort, "max_tokens": self.settings.max_tokens}
        chosen |= {"seed": None if self.settings.seed is None else self.settings.seed + number}
        set_values = {name: value for name, value in chosen.items() if value is not None}
        # A private server may take parameters that litellm does not list for it.
        extra = {"api_base": self.api_base, "allowed_openai_params": list(set_values)} if self.api_base else {}
        limits = {"timeout": self.retry.timeout_s, "max_retries": 0, "num_retries": 0}
        ask = _import_litellm().acompletion
        response = await ask(model=self.settings.model, messages=[*messages], **set_values, **extra, **limits)
        if not response.choices:
            raise _NoChoice("the provider's answer holds no choice")
        return response

    def _count_usage(self, usage: Any, messages: Sequence[Message], text: str) -> dict[str, int]:
        """Return the tokens of a request as the provider counted them, or our own count where it did not."""
        prompt = usage.prompt_tokens or sum(self.count_tokens(message["content"]) for message in messages)
        details = getattr(usage, "completion_tokens_details", None)
        reasoning = getattr(details, "reasoning_tokens", None) or 0
        return {
            "prompt": prompt,
            "completion": usage.completion_tokens or self.count_tokens(text),
            "reasoning": reasoning,
        }

    def _compute_cost(self, response: Any, tokens: dict[str, int]) -> float | None:
        if self._own_price:
            return self._own_price.compute_cost(tokens["prompt"], tokens["completion"])
        try:
            return float(_import_litellm().completion_cost(completion_response=response, model=self.settings.model))
        except Exception:
            # litellm has no price, and says so by various exceptions.
            return None


async def _request_with_retries(request: Callable[[], Awaitable[Any]], retry: RetryPolicy, retried: list[str]) -> Any:
    for attempt in range(retry.retries + 1):
        try:
            return await request()
        except Exception as error:
            status, summary = _read_status(error), _summarise_error(error)
            if status in _FATAL:
                raise UsageError(f"{summary}; check the name of the model and the key in the environment") from None
            if attempt == retry.retries or not (status in _RETRYABLE or status >= 500):
                raise AskFailed(summary) from None
            retried.append(summary)
            wait = max(_read_retry_after(error), retry.first_wait_s * 2**attempt * random.uniform(0.5, 1.0))
            if wait > _MAX_WAIT_S:
                raise AskFailed(f"{summary}; the provider asks to wait {wait:.0f} s, run this again then") from None
        await asyncio.sleep(wait)
    raise AssertionError("unreachable")


def _read_status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _summarise_error(error: Exception) -> str:
    """Return an error in one line, without keys."""
    return redact_secrets(" ".join(str(error).split()) or type(error).__name__)[:500]


def _read_retry_after(error: Exception) -> float:
    """Return the seconds that the provider asks to wait; 0 where it does not ask."""
    headers = getattr(error, "litellm_response_headers", None) or {}
    text = str(headers.get("retry-after") or "0")
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def _look_up_price(model: str) -> Price | None:
    try:
        info = _import_litellm().get_model_info(model)
    except UsageError:
        raise
    except Exception:
        # Not in its list; the class of the exception varies.
        return None
    prices = (info.get("input_cost_per_token"), info.get("output_cost_per_token"))
    return None if None in prices else Price(*map(float, prices))


@cache
def _import_litellm() -> Any:
    """Import litellm on first use, which takes seconds. It must print nothing, and read neither .env files nor the
    network."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        litellm: Any = importlib.import_module("litellm")
    except ImportError as error:
        raise UsageError("asking a model needs litellm; install it with: pip install -e '.[generate]'") from error
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    # A request that is cancelled early leaves one of its coroutines behind.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    return litellm
