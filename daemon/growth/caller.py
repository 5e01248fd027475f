"""How growth asks the model: through the daemon's own runtime, recorded and counted."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from daemon.growth.budget import add_spending
from daemon.serving.exchange import Exchange
from daemon.serving.served import Served
from daemon.store.store import Store
from reef.errors import TimedOut
from reef.feedback import Message
from reef.recipe import Completion


@dataclass(slots=True)
class Caller:
    """Shared by every step."""

    exchange: Exchange
    store: Store

    async def ask(
        self,
        scenario: str,
        step: int,
        messages: Sequence[Message],
        *,
        served: Served | None = None,
        model: str | None = None,
        max_tokens: int = 512,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> tuple[Completion, str | None]:
        """One call, recorded as `kind: episode`; returns the answer and its receipt.

        Raises:
            UpstreamFailed, TimedOut, Unavailable: it could not run. Never a score.
        """
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self.exchange.complete(
                    messages,
                    scenario=scenario,
                    served=served,
                    model=model,
                    max_tokens=max_tokens,
                    temperature=temperature,
                    schema=schema,
                    tags={"step": str(step)},
                )
        except TimeoutError:
            raise TimedOut(f"the model did not answer within {timeout_s:g} s") from None
        await self.store.write(lambda connection: add_spending(connection, scenario, answer.usage))
        data = _json(answer.text) if schema is not None else None
        return Completion(answer.text, data, answer.usage), answer.receipt


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
