"""Decisions that screens share: promote, reject, check out. Each asks once and says what will happen."""

from collections.abc import Awaitable, Callable
from typing import Any

from reef.errors import ReefError
from reef_cli.tui.screens.ask import ConfirmScreen, LineScreen
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.text import one_line, short_id


class Deciding(ReefScreen):
    """A screen on which candidates and releases are decided about."""

    def promote(self, scenario: str, candidate_id: str, title: str) -> None:
        what = (
            f"{one_line(title)}\n\nCandidate {short_id(candidate_id)} becomes a release of {scenario} and is "
            "served from now on in new conversations. `Check out` takes it back."
        )

        async def act() -> None:
            await self.reef.client.promote(scenario, candidate_id)

        self._confirmed("Promote", what, act, f"{short_id(candidate_id)} is served")

    def reject(self, scenario: str, candidate_id: str, title: str) -> None:
        what = (
            f"{one_line(title)}\n\nCandidate {short_id(candidate_id)} is closed and never served. "
            "Why? (empty is fine)"
        )

        def answered(reason: str | None) -> None:
            if reason is None:
                return

            async def act() -> None:
                await self.reef.client.reject(scenario, candidate_id, reason=reason or None)

            self._act(act, f"{short_id(candidate_id)} is rejected")

        self.app.push_screen(LineScreen("Reject", what, "reason"), answered)

    def check_out(self, scenario: str, release_id: str, title: str) -> None:
        what = (
            f"{one_line(title)}\n\nThe content of {short_id(release_id)} is published again as a new head of "
            f"{scenario}. The history keeps everything; running conversations keep their release."
        )

        async def act() -> None:
            await self.reef.client.rollback(scenario, release_id)

        self._confirmed("Check out", what, act, f"the content of {short_id(release_id)} is served again")

    def _confirmed(self, title: str, what: str, act: Callable[[], Awaitable[Any]], done: str) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._act(act, done)

        self.app.push_screen(ConfirmScreen(title, what), answered)

    def _act(self, act: Callable[[], Awaitable[Any]], done: str) -> None:
        async def work() -> None:
            try:
                await act()
            except ReefError as error:
                self.complain(error)
                return
            self.notify(done, markup=False)
            self.settle()

        self.run_worker(work(), group="act", exit_on_error=False)
