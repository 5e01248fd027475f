"""A screen from which reports go out: held for a moment, sent, and held on where they do not get through."""

import asyncio
from contextlib import suppress
from typing import Any

from textual import work

from reef.errors import ReefError
from reef_cli.tui.inbox_words import sentence, why
from reef_cli.tui.outbox import Held, Outbox
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.turns import Turns

TICK_S = 0.5
LEAVE_S = 5.0


class Sending(ReefScreen):
    """Sends also while another mode is shown; while no daemon answers it waits for one."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox()
        self.turns = Turns()
        self._sent: set[str] = set()
        """Reports that went out and that are not known to count."""

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(TICK_S, self._tick)

    def show_turns(self) -> None:
        """Show the turns with what is held of them."""

    def _tick(self) -> None:
        if self.outbox:
            if not self.reef.away and (due := self.outbox.take_due()):
                self._send(due)
            self.show_turns()

    @work(group="send", exit_on_error=False)
    async def _send(self, due: list[Held]) -> None:
        for held in due:
            self.turns.close(held)
        for held in due:
            try:
                answer = await self.outbox.send(lambda: self.reef.client, held)
            except ReefError as error:
                answer = None
                self.complain(error)
            if answer is None:
                self.turns.reopen(held)
            else:
                self._sent.add(held.report_id)
        self.settle()

    def tell_what_became(self, reports: list[dict[str, Any]]) -> None:
        """Say of what was sent from here that it does not count, and why."""
        for report in reports:
            if report["agent_record_id"] not in self._sent or report["state"] == "pending":
                continue
            self._sent.discard(report["agent_record_id"])
            if report["state"] == "ineligible":
                told = f"{sentence(why(report))} r shows the reports; a score there is a new one."
                self.notify(told, title="this report does not count", severity="warning", markup=False)

    async def on_unmount(self) -> None:
        """Leaving sends what is held, and what was on its way; what does not get out is left to the app."""
        due = {held.report_id: held for held in self.outbox.take_due(everything=True)}

        async def send(held: Held) -> None:
            with suppress(ReefError):
                if await self.outbox.send(lambda: self.reef.client, held) is not None:
                    del due[held.report_id]

        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await asyncio.gather(*map(send, due.values()))
        self.reef.unsent += due.values()
