"""The purse of one step: asked before each of its model calls, so that growth never passes its daily limit.

What a call can cost at most is held in the store before it is sent; what it did cost is counted after,
and the hold is gone with the same commit. A call of which nobody knows what it cost (no usage in the
answer, no answer in time, the daemon died) costs the most it can.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from daemon.evaluation.comparison import Stopped, being_cancelled
from daemon.growth import budget
from daemon.growth.budget import Hold
from daemon.growth.estimate import CallSize
from daemon.growth.lease import Lease, prove
from daemon.store.store import Store
from reef.errors import ReefError
from reef.feedback import Usage
from reef.money import dollars
from reef.recipe import Budget
from reef.runtime import Billed, Price

log = logging.getLogger("reef.growth")


class OutOfMoney(Stopped):
    """Today's limit has no room for another call of this step, which may cost `usd`."""

    def __init__(self, usd: float) -> None:
        super().__init__(f"the next call may cost {dollars(usd)}, and today's limit has no room")
        self.usd = usd


@dataclass(slots=True)
class Purse:
    """`left` are the US dollars kept for the step that no call holds, `free` what else the day has: both as
    of the last call. Without a price it only counts calls and tokens."""

    store: Store
    lease: Lease
    step: int
    price: Price | None
    limit: float
    left: float = 0.0
    free: float = 0.0
    _running: int = 0
    """Calls that hold something, or are about to."""
    _change: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by a new one, when a call gives back what it held."""

    @property
    def scenario(self) -> str:
        return self.lease.scenario

    def budget(self) -> Budget:
        """What is left, as a recipe is told."""
        return Budget(None if self.price is None else max(self.left, 0.0) + max(self.free, 0.0), None)

    async def take(self, size: CallSize) -> Hold:
        """Hold what a call can cost. `settle` must follow.

        Raises:
            OutOfMoney: there is not that much, and no running call that might give some back.
            LostLease: another daemon grows the scenario now.
            Unavailable: the store cannot be written.
        """
        call = Hold.of(size, 0.0 if self.price is None else size.most_usd(self.price))
        while True:
            change = self._change
            self._running += 1
            try:
                held = self.price is None or await self._hold(call)
            except BaseException:
                self._over()
                raise
            if held:
                return call
            self._running -= 1
            if not self._running and not change.is_set():
                self._tell()
                raise OutOfMoney(call.usd)
            await change.wait()

    async def settle(self, call: Hold, usage: Usage) -> Usage:
        """Count a call that is over, whatever becomes of the caller; returns its usage with what it was
        charged. Where the store cannot be written, all of it stays held.

        Raises:
            Unavailable: the store cannot be written; not to a caller that is being cancelled.
        """
        charged = self._charged(call.size, usage)

        def work(connection: Connection) -> tuple[float, float]:
            if self.price is None or budget.let_go(connection, call):
                budget.add_spending(connection, self.scenario, self.step, charged, day=call.day)
            return self._rest(connection)

        try:
            self.left, self.free = await self.store.write_anyway(work)
        except ReefError as error:
            if not being_cancelled():
                raise
            log.warning("a call of step %s of %s is not counted: %s", self.step, self.scenario, error)
        finally:
            self._over()
        return replace(usage, cost=charged.cost)

    async def _hold(self, call: Hold) -> bool:
        def work(connection: Connection) -> tuple[bool, float, float]:
            prove(connection, self.lease)
            held = budget.hold(connection, self.lease, self.step, call, limit=self.limit)
            return (held, *self._rest(connection))

        try:
            held, self.left, self.free = await self.store.write_anyway(work)
        except asyncio.CancelledError:
            with suppress(ReefError):
                await self.store.write_anyway(lambda connection: budget.let_go(connection, call))
            raise
        return held

    def _rest(self, connection: Connection) -> tuple[float, float]:
        if self.price is None:
            return 0.0, 0.0
        left = budget.left_of(connection, self.scenario, self.step)
        return left, budget.free_today(connection, self.limit)

    def _over(self) -> None:
        self._running -= 1
        self._tell()

    def _tell(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _charged(self, size: CallSize, usage: Usage) -> Usage:
        told = usage.input_tokens is not None and usage.output_tokens is not None
        if self.price is None:
            counted = usage if told else Usage(size.input_tokens, size.output_tokens)
            return replace(counted, cost=None)
        if not told:
            return Usage(size.most_input_tokens, size.output_tokens, cost=size.most_usd(self.price))
        if usage.cost is not None:
            return usage
        return replace(usage, cost=self.price.cost(Billed(usage.input_tokens or 0, usage.output_tokens or 0)))
