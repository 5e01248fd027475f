"""The growth worker: one loop per scenario that turns full batches into steps and never blocks serving."""

import asyncio
import logging
from contextlib import suppress

from daemon.growth import steps
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

    def poke(self, name: str) -> None:
        if (wake := self._wakes.get(name)) is not None:
            wake.set()

    async def leave(self, name: str) -> None:
        """End the loop of one scenario; a running step stops where it is."""
        self._wakes.pop(name, None)
        if (task := self._loops.pop(name, None)) is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def stop(self) -> None:
        """End the loops; a running step goes on at the next start."""
        self._stopping = True
        for task in self._loops.values():
            task.cancel()
        for task in self._loops.values():
            with suppress(asyncio.CancelledError):
                await task

    async def _loop(self, scenario: Scenario) -> None:
        wake = self._wakes[scenario.name]
        while not self._stopping:
            with suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), timeout=LEASE_S)
            wake.clear()
            if self._is_gone(scenario):
                return
            try:
                await self._grow(scenario)
            except Conflict as error:
                log.info("growth of %s pauses: %s", scenario.name, error)
            except ReefError as error:
                self._tell(scenario, error.message, error.hint)
                await asyncio.sleep(RETRY_S)
                wake.set()
            except Exception as error:
                log.exception("growth of %s failed", scenario.name)
                self._tell(scenario, f"growth failed: {error!r}", "see `reef logs`; this is a bug")

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
            lambda connection: take(connection, scenario.name, self.rooms.holder)
        )
        if lease is None:
            return
        while not self._stopping and (step := await self._next(scenario, lease)) is not None:
            async with self.rooms.step_slots:
                await StepRun(self.rooms, scenario, lease, step, lambda: self._stopping).run()

    async def _next(self, scenario: Scenario, lease: Lease) -> int | None:
        """The step to run: one that is begun, else a new one for a full batch."""
        begun = await self.rooms.store.read(lambda c: steps.unfinished(c, scenario.name))
        if begun or scenario.training_mode == "manual":
            return next(iter(begun), None)
        new = await self.rooms.store.write(
            lambda connection: steps.begin(
                connection,
                lease,
                recipe=scenario.recipe,
                processor=scenario.section.use,
                batch_size=scenario.section.batch_size,
            )
        )
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
