"""How growth asks the model: through the daemon's own runtime, recorded, counted, limited."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from daemon.growth.budget import add_spending
from daemon.records.book import cost_of
from daemon.runtimes.router import Router
from daemon.serving.exchange import Exchange
from daemon.serving.served import Served
from daemon.store.store import Store
from reef.feedback import Message, Usage
from reef.recipe import Completion
from reef.runtime import Parsed


@dataclass(slots=True)
class Caller:
    """Shared by every step; `limit` bounds how many of growth's calls run at once."""

    exchange: Exchange
    router: Router
    store: Store
    limit: asyncio.Semaphore

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
    ) -> tuple[Completion, str]:
        """One call, recorded as `kind: episode`; returns the answer and its receipt.

        Raises:
            UpstreamFailed, TimedOut, Unavailable: it could not run. Never a score.
        """
        async with self.limit:
            answer = await self.exchange.complete(
                messages,
                scenario=scenario,
                served=served,
                model=model,
                max_tokens=max_tokens,
                temperature=temperature,
                schema=schema,
                tags={"step": str(step)},
                timeout_s=timeout_s,
            )
        usage = self._priced(answer.usage)
        await self.store.write(lambda connection: add_spending(connection, scenario, usage))
        data = _json(answer.text) if schema is not None else None
        return Completion(answer.text, data, usage), answer.receipt

    def _priced(self, usage: Usage) -> Usage:
        tokens = Parsed(None, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        return replace(usage, cost=cost_of(tokens, self.router.own().price))


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
