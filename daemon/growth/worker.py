"""The growth worker: one loop per scenario that turns full batches into steps and never blocks serving."""

import asyncio
import logging
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection

from daemon.evaluation.comparison import being_cancelled
from daemon.growth import steps
from daemon.growth.budget import settle_leftovers
from daemon.growth.lease import LEASE_S, Lease, take
from daemon.growth.rooms import Rooms
from daemon.growth.step import StepRun
from daemon.serving.scenarios import Scenario
from reef.errors import Conflict, NotFound, ReefError

log = logging.getLogger("reef.growth")

RETRY_S = 5.0


class Growth:
    """Grows every scenario whose recipe learns. `poke` says that something may have become ready."""

    def __init__(self, rooms: Rooms) -> None:
        self.rooms = rooms
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._wakes: dict[str, asyncio.Event] = {}
        self._stopping = False

    def watch(self, scenario: Scenario) -> None:
        """Start the loop of a scenario; one that does not learn needs none."""
        name = scenario.name
        if self._stopping or name in self._loops or not self.rooms.limits.enabled:
            return
        if self.rooms.recipe_of(name).surface == "none":
            return
        self._wakes[name] = asyncio.Event()
        self._wakes[name].set()
        self._loops[name] = asyncio.create_task(self._loop(scenario), name=f"growth {name}")

    def runs(self, name: str) -> bool:
        """Whether a scenario has a loop, which runs its open steps; they lie still otherwise."""
        return name in self._loops

    def poke(self, name: str) -> None:
        if (wake := self._wakes.get(name)) is not None:
            wake.set()

    async def leave(self, name: str) -> None:
        """End the loop of one scenario; a running step stops where it is."""
        if (task := self._loops.get(name)) is not None:
            task.cancel()
            await asyncio.wait([task])
            if self._loops.get(name) is task:  # until then a step may still be run
                del self._loops[name], self._wakes[name]

    async def stop(self) -> None:
        """End the loops; a running step goes on at the next start."""
        self._stopping = True
        for task in self._loops.values():
            task.cancel()
        if self._loops:
            await asyncio.wait(self._loops.values())

    async def _loop(self, scenario: Scenario) -> None:
        wake = self._wakes[scenario.name]
        while not self._stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(LEASE_S):
                    await wake.wait()
            wake.clear()
            if self._is_gone(scenario):
                return
            try:
                await self._grow(scenario)
            except Exception as error:
                if being_cancelled():  # what broke on the way out is no reason to go on
                    return
                if self._after(scenario, error):
                    await asyncio.sleep(RETRY_S)
                    wake.set()

    def _after(self, scenario: Scenario, error: Exception) -> bool:
        """Tell of what growing failed on; whether to try again by itself."""
        match error:
            case Conflict():
                log.info("growth of %s pauses: %s", scenario.name, error)
                return False
            case ReefError():
                self._tell(scenario, error.message, error.hint)
                return True
            case _:
                log.error("growth of %s failed", scenario.name, exc_info=error)
                self._tell(scenario, f"growth failed: {error!r}", "see `reef logs`; this is a bug")
                return False

    def _is_gone(self, scenario: Scenario) -> bool:
        """Whether it was archived meanwhile."""
        try:
            self.rooms.scenarios.get(scenario.name)
        except NotFound:
            return True
        return False

    def _tell(self, scenario: Scenario, message: str, hint: str) -> None:
        self.rooms.events.publish("error", scenario.name, where="growth", message=message, hint=hint)

    async def _grow(self, scenario: Scenario) -> None:
        lease = await self.rooms.store.write(
            lambda connection: _take(connection, scenario.name, self.rooms.holder)
        )
        if lease is None:
            return
        while not self._stopping and (step := await self._next(scenario, lease)) is not None:
            async with self.rooms.step_slots:
                await StepRun(self.rooms, scenario, lease, step, lambda: self._stopping).run()

    async def _next(self, scenario: Scenario, lease: Lease) -> int | None:
        """The step to run: one that is begun, else a new one for an instruction or a full batch."""
        if begun := await self.rooms.store.read(lambda c: steps.unfinished(c, scenario.name)):
            return begun[0]
        new = await self.rooms.store.write(lambda connection: _begin(connection, scenario, lease))
        if new is None:
            return None
        step, batch = new
        for unit in batch:
            for receipt in unit["receipts"]:
                self.rooms.events.publish(
                    "verdict",
                    scenario.name,
                    report=unit["report"],
                    receipt=receipt,
                    state="consumed",
                    reason="",
                    step=step,
                )
        return step


def _take(connection: Connection, scenario: str, holder: str) -> Lease | None:
    """The lease, and what calls of those who had it before still held is spent."""
    if (lease := take(connection, scenario, holder)) is not None:
        settle_leftovers(connection, lease)
    return lease


def _begin(
    connection: Connection, scenario: Scenario, lease: Lease
) -> tuple[int, list[dict[str, Any]]] | None:
    """A new step as the scenario's training mode has it, instructions first."""
    named = {"recipe": scenario.recipe, "processor": scenario.section.use}
    new = None
    if scenario.training_mode != "auto":
        new = steps.begin_instructed(connection, lease, **named)
    if new is None and scenario.training_mode != "manual":
        new = steps.begin(connection, lease, **named, batch_size=scenario.section.batch_size)
    return new
