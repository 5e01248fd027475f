"""The purse of a step: asked before each model call, so that growth never passes its daily limit.

What a call can cost at most is taken out before it is sent; what it did cost is counted after, and the
rest put back. A call of which nobody knows what it cost (no usage in the answer, no answer in time)
costs the most it can.
"""

import asyncio
from dataclasses import dataclass, field, replace

from daemon.evaluation.comparison import Stopped
from daemon.growth.budget import add_spending, reserve
from daemon.growth.estimate import CallSize, dollars
from daemon.store.store import Store
from reef.feedback import Usage
from reef.recipe import Budget
from reef.runtime import Billed, Price


class OutOfMoney(Stopped):
    """Today's limit has no room for another call of this step."""


@dataclass(slots=True)
class Purse:
    """`left` are the US dollars kept for the step that no call holds; `free` what else the day had when
    it was opened. Without a price it only counts calls and tokens."""

    store: Store
    scenario: str
    step: int
    price: Price | None
    limit: float
    left: float = 0.0
    free: float = 0.0
    _held: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def budget(self) -> Budget:
        """What is left, as a recipe is told."""
        return Budget(None if self.price is None else max(self.left, 0.0) + max(self.free, 0.0), None)

    async def take(self, size: CallSize) -> None:
        """Take out what a call can cost. `settle` must follow.

        Raises:
            OutOfMoney: there is not that much, and no running call that might give some back.
        """
        most = self._most(size)
        async with self._changed:
            while most > self.left + 1e-9 and not await self._draw(most - self.left):
                if not self._held:
                    raise OutOfMoney(f"the next call may cost {dollars(most)}, and today's limit has no room")
                await self._changed.wait()
            self.left -= most
            self._held += 1

    async def settle(self, size: CallSize, usage: Usage) -> Usage:
        """Count a call that is over; returns its usage with what it was charged."""
        charged = self._charged(size, usage)
        try:
            await self.store.write(
                lambda connection: add_spending(connection, self.scenario, self.step, charged)
            )
        finally:
            async with self._changed:
                self.left += self._most(size) - (charged.cost or 0.0)
                self._held -= 1
                self._changed.notify_all()
        return replace(usage, cost=charged.cost)

    async def _draw(self, usd: float) -> bool:
        """Have more of today's limit kept for the step."""
        drawn = await self.store.write(
            lambda connection: reserve(connection, self.scenario, self.step, usd, limit=self.limit)
        )
        if drawn:
            self.left += usd
        return drawn

    def _most(self, size: CallSize) -> float:
        return 0.0 if self.price is None else size.usd(self.price)

    def _charged(self, size: CallSize, usage: Usage) -> Usage:
        if usage.input_tokens is None or usage.output_tokens is None:
            usage = Usage(size.input_tokens, size.output_tokens, cost=self._most(size))
        if self.price is None:
            return replace(usage, cost=None)
        if usage.cost is None:
            cost = self.price.cost(Billed(usage.input_tokens or 0, usage.output_tokens or 0))
            return replace(usage, cost=cost)
        return usage
