"""How growth asks the model: through the daemon's own runtime, recorded, counted and paid from a purse."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from daemon.growth.estimate import call_size
from daemon.growth.purse import Purse
from daemon.serving.exchange import Exchange
from daemon.serving.served import Served
from reef.errors import Loading, TimedOut, UpstreamFailed
from reef.feedback import Message, Usage
from reef.recipe import Completion

T = TypeVar("T")
LOADING_S = 300.0
"""How long a call waits for a model to be loaded."""
UNKNOWN = Usage()
NOTHING = Usage(0, 0)


@dataclass(slots=True)
class Caller:
    """Shared by every step."""

    exchange: Exchange

    async def ask(
        self,
        purse: Purse,
        messages: Sequence[Message],
        *,
        served: Served | None = None,
        model: str | None = None,
        max_tokens: int = 512,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> tuple[Completion, str | None]:
        """One call of the purse's step, recorded as `kind: episode`; returns the answer and its receipt.

        Raises:
            UpstreamFailed, TimedOut, Unavailable: it could not run. Never a score.
            OutOfMoney: the purse is empty; nothing was asked.
        """
        size = call_size(
            messages, max_tokens=max_tokens, prefix=served.prefix if served else None, schema=schema
        )
        await purse.take(size)
        usage = NOTHING  # what never left is not billed

        def sent() -> None:
            nonlocal usage
            usage = UNKNOWN

        try:
            async with asyncio.timeout(timeout_s):
                answer = await _once_loaded(
                    lambda: self.exchange.complete(
                        messages,
                        scenario=purse.scenario,
                        served=served,
                        model=model,
                        max_tokens=max_tokens,
                        temperature=temperature,
                        schema=schema,
                        tags={"step": str(purse.step)},
                        on_sent=sent,
                    )
                )
            usage = answer.usage
        except TimeoutError:
            raise TimedOut(f"the model did not answer within {timeout_s:g} s") from None
        except UpstreamFailed as error:
            if error.status is not None:
                usage = NOTHING  # an error is not billed either
            raise
        finally:
            usage = await purse.settle(size, usage)
        data = _json(answer.text) if schema is not None else None
        return Completion(answer.text, data, usage), answer.receipt


async def _once_loaded(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and as long as the model is being loaded ask again: the first call starts an idle engine."""
    deadline = time.monotonic() + LOADING_S
    while True:
        try:
            return await ask()
        except Loading as error:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(error.retry_after_s)


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
