"""A language model behind any provider, through litellm: ask, wait, try again, count what it cost."""

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
from pkb.generate.redact import without_secrets

Message = Mapping[str, str]
"""role and content"""

_TRY_AGAIN = (408, 409, 425, 429)
_NOBODY = (401, 403, 404)
"""The key, the account or the model is wrong: no other request will do better."""
_LONGEST_WAIT_S = 600.0


class _NoChoice(Exception):
    status_code = 502


class AskFailed(Exception):
    """The provider did not answer this request; another one may succeed."""


@dataclass(frozen=True)
class Price:
    """Dollars per token."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        return self.prompt * prompt_tokens + self.completion * completion_tokens


@dataclass(frozen=True)
class Settings:
    """What an answer depends on, besides the prompt. None leaves the choice to the provider."""

    model: str
    """As litellm names it: provider/name."""
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    """Of the first sample; the others count on from it."""
    max_tokens: int = 16384
    reasoning_effort: str | None = None


@dataclass(frozen=True)
class Patience:
    """How long and how often a request is tried."""

    timeout_s: float = 600.0
    retries: int = 5
    first_wait_s: float = 1.0
    """Doubled from one try to the next, less a random part; a provider's Retry-After counts where it is longer."""


@dataclass(frozen=True)
class Answer:
    text: str
    finish_reason: str | None
    model: str
    """As the provider names it."""
    tokens: dict[str, int]
    cost_usd: float | None
    seconds: float
    """From the first try to the answer."""
    retried: list[str] = field(default_factory=list)
    """Why earlier tries failed."""


class Model:
    def __init__(
        self,
        settings: Settings,
        patience: Patience | None = None,
        api_base: str | None = None,
        price: Price | None = None,
    ):
        _litellm()
        self.settings, self.patience = settings, patience or Patience()
        self.api_base = api_base
        self.price = _listed_price(settings.model) if price is None else price
        """None where nobody knows it."""
        self._own_price = price
        self._counted: dict[str, int] = {}

    async def ask(self, messages: Sequence[Message], number: int = 0) -> Answer:
        """The answer to a conversation. `number` tells samples of one prompt apart.

        Raises AskFailed when this request has failed for good, UsageError when all others would fail too.
        """
        started, retried = time.monotonic(), list[str]()
        response = await _persistent(lambda: self._request(messages, number), self.patience, retried)
        choice = response.choices[0]
        refusal = (choice.message.provider_specific_fields or {}).get("refusal")
        text = choice.message.content or refusal or ""
        tokens = self._tokens(response.usage, messages, text)
        return Answer(
            text=text,
            finish_reason="refusal" if refusal else choice.finish_reason,
            model=response.model or self.settings.model,
            tokens=tokens,
            cost_usd=self._cost(response, tokens),
            seconds=round(time.monotonic() - started, 3),
            retried=retried,
        )

    def count_tokens(self, text: str) -> int:
        """About how many tokens a prompt has."""
        if text not in self._counted:
            self._counted[text] = int(_litellm().token_counter(model=self.settings.model, text=text))
        return self._counted[text]

    def most(self, prompt: str) -> float:
        """The most that one answer can cost, in dollars."""
        if self.price is None:
            raise UsageError(
                f"nobody has told us what {self.settings.model} costs; say it with --price-in and --price-out, in "
                "dollars per million tokens"
            )
        return self.price.of(self.count_tokens(prompt), self.settings.max_tokens)

    async def _request(self, messages: Sequence[Message], number: int) -> Any:
        chosen: dict[str, Any] = {"temperature": self.settings.temperature, "top_p": self.settings.top_p}
        chosen |= {"reasoning_effort": self.settings.reasoning_effort, "max_tokens": self.settings.max_tokens}
        chosen |= {"seed": None if self.settings.seed is None else self.settings.seed + number}
        given = {name: value for name, value in chosen.items() if value is not None}
        # A server of one's own may take what litellm does not know of it.
        extra = {"api_base": self.api_base, "allowed_openai_params": list(given)} if self.api_base else {}
        limits = {"timeout": self.patience.timeout_s, "max_retries": 0, "num_retries": 0}
        ask = _litellm().acompletion
        response = await ask(model=self.settings.model, messages=[*messages], **given, **extra, **limits)
        if not response.choices:
            raise _NoChoice("the provider's answer holds no choice")
        return response

    def _tokens(self, usage: Any, messages: Sequence[Message], text: str) -> dict[str, int]:
        """As the provider counted them, or where it did not, as we do."""
        prompt = usage.prompt_tokens or sum(self.count_tokens(message["content"]) for message in messages)
        details = getattr(usage, "completion_tokens_details", None)
        reasoning = getattr(details, "reasoning_tokens", None) or 0
        return {
            "prompt": prompt,
            "completion": usage.completion_tokens or self.count_tokens(text),
            "reasoning": reasoning,
        }

    def _cost(self, response: Any, tokens: dict[str, int]) -> float | None:
        if self._own_price:
            return self._own_price.of(tokens["prompt"], tokens["completion"])
        try:
            return float(_litellm().completion_cost(completion_response=response, model=self.settings.model))
        except Exception:
            # Nobody has told litellm a price; it has many ways of saying so.
            return None


async def _persistent(request: Callable[[], Awaitable[Any]], patience: Patience, retried: list[str]) -> Any:
    for attempt in range(patience.retries + 1):
        try:
            return await request()
        except Exception as error:
            status, told = _status(error), _told(error)
            if status in _NOBODY:
                raise UsageError(f"{told}; check the name of the model and the key in the environment") from None
            if attempt == patience.retries or not (status in _TRY_AGAIN or status >= 500):
                raise AskFailed(told) from None
            retried.append(told)
            wait = max(_retry_after(error), patience.first_wait_s * 2**attempt * random.uniform(0.5, 1.0))
            if wait > _LONGEST_WAIT_S:
                raise AskFailed(f"{told}; the provider asks to wait {wait:.0f} s, run this again then") from None
        await asyncio.sleep(wait)
    raise AssertionError("unreachable")


def _status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _told(error: Exception) -> str:
    """An error in one line, without keys."""
    return without_secrets(" ".join(str(error).split()) or type(error).__name__)[:500]


def _retry_after(error: Exception) -> float:
    """Seconds that the provider asks to wait; 0 where it says nothing."""
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


def _listed_price(model: str) -> Price | None:
    try:
        info = _litellm().get_model_info(model)
    except UsageError:
        raise
    except Exception:
        # Not in its list; the class of the exception varies.
        return None
    prices = (info.get("input_cost_per_token"), info.get("output_cost_per_token"))
    return None if None in prices else Price(*map(float, prices))


@cache
def _litellm() -> Any:
    """Imported when first used: it takes seconds. Told to be quiet, and to read neither .env files nor the network."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        litellm: Any = importlib.import_module("litellm")
    except ImportError as error:
        raise UsageError(
            "asking a model needs litellm; install it with: pip install 'parallelkernelbench[generate]'"
        ) from error
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    # A request that is cancelled early leaves one of its coroutines behind.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    return litellm
