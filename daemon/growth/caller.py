"""How growth asks the model: through the daemon's own runtime, recorded, counted and paid from a purse."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from daemon.growth.budget import Hold
from daemon.growth.estimate import CallSize, call_size
from daemon.growth.purse import Purse
from daemon.serving.exchange import Exchange
from daemon.serving.served import Served
from reef.errors import Loading, TimedOut, UpstreamFailed
from reef.feedback import Message, Usage
from reef.recipe import Completion
from reef.runtime import Runtime

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
        runtime: Runtime | None = None,
        served: Served | None = None,
        model: str | None = None,
        max_tokens: int = 512,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> tuple[Completion, str | None]:
        """One call of the purse's step, recorded as `kind: episode`; returns the answer and its receipt.

        `runtime` and `model` are those of the step (`Ground`). `timeout_s` is what the model may take:
        waiting for a turn, and before another try, does not count.

        Raises:
            UpstreamFailed, TimedOut, Unavailable: it could not run. Never a score.
            OutOfMoney: the purse is empty; nothing was asked, or not again.
        """
        size = call_size(
            messages, max_tokens=max_tokens, prefix=served.prefix if served else None, schema=schema
        )
        call = _Paid(purse, size, timeout_s)
        await call.take()
        try:
            async with call.clock:
                answer = await _once_loaded(
                    lambda: self.exchange.complete(
                        messages,
                        scenario=purse.scenario,
                        served=served,
                        runtime=runtime,
                        model=model,
                        max_tokens=max_tokens,
                        temperature=temperature,
                        schema=schema,
                        tags={"step": str(purse.step)},
                        on_sent=call.sent,
                        on_again=call.again,
                    )
                )
            call.usage = answer.usage
        except TimeoutError:
            raise TimedOut(f"the model did not answer within {timeout_s:g} s") from None
        except (UpstreamFailed, TimedOut) as error:
            if not error.sent or (isinstance(error, UpstreamFailed) and error.status is not None):
                call.usage = NOTHING  # what never left is not billed, nor is an error
            raise
        finally:
            usage = await call.settle()
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


@dataclass(slots=True)
class _Paid:
    """One call and its tries, each of which is paid for that may have been answered."""

    purse: Purse
    size: CallSize
    timeout_s: float | None
    usage: Usage = NOTHING
    clock: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    _hold: Hold | None = None

    async def take(self) -> None:
        self._hold = await self.purse.take(self.size)

    def sent(self) -> None:
        self.usage = UNKNOWN
        if self.timeout_s is not None:
            self.clock.reschedule(asyncio.get_running_loop().time() + self.timeout_s)

    async def again(self, may_have_cost: bool) -> None:
        self.clock.reschedule(None)
        if may_have_cost:
            await self.settle()
            await self.take()
        self.usage = NOTHING

    async def settle(self) -> Usage:
        """Safe to repeat: nothing is counted twice."""
        hold, self._hold = self._hold, None
        return self.usage if hold is None else await self.purse.settle(hold, self.usage)


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
