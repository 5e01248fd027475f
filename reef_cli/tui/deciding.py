"""Decisions that screens share: promote, reject, check out. Each asks once and says what will happen."""

from collections.abc import Awaitable, Callable

from reef.errors import ReefError
from reef_cli.tui.screens.ask import ConfirmScreen, LineScreen
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.text import one_line, short_id


class Deciding(ReefScreen):
    """A screen on which candidates and releases are decided about."""

    def promote(self, scenario: str, candidate_id: str, title: str) -> None:
        what = (
            f"{one_line(title)}\n\nCandidate {short_id(candidate_id)} becomes a release of {scenario} and is "
            "served from now on in new conversations. `Serve again` on an earlier release takes it back."
        )

        async def act() -> str:
            made = await self.reef.client.promote(scenario, candidate_id)
            applied = f"candidate {short_id(candidate_id)} was applied"
            return f"{applied}: release {short_id(made['release_id'])} is served"

        self._confirmed("Promote", what, act)

    def reject(self, scenario: str, candidate_id: str, title: str) -> None:
        what = (
            f"{one_line(title)}\n\nCandidate {short_id(candidate_id)} is closed and never served. "
            "Why? (empty is fine)"
        )

        def answered(reason: str | None) -> None:
            if reason is None:
                return

            async def act() -> str:
                await self.reef.client.reject(scenario, candidate_id, reason=reason or None)
                return f"candidate {short_id(candidate_id)} is rejected"

            self._act(act)

        self.app.push_screen(LineScreen("Reject", what, "reason"), answered)

    def check_out(self, scenario: str, release_id: str, title: str) -> None:
        what = (
            f"{one_line(title)}\n\nThe content of {short_id(release_id)} is published again as a new head of "
            f"{scenario}. The history keeps everything; running conversations keep their release."
        )

        async def act() -> str:
            made = await self.reef.client.rollback(scenario, release_id)
            return (
                f"release {short_id(made['release_id'])} serves the content of {short_id(release_id)} again"
            )

        self._confirmed("Serve again (check out)", what, act)

    def _confirmed(self, title: str, what: str, act: Callable[[], Awaitable[str]]) -> None:
        """Do it once it is confirmed; `act` answers with the words that say what was done."""

        def answered(yes: bool | None) -> None:
            if yes:
                self._act(act)

        self.app.push_screen(ConfirmScreen(title, what), answered)

    def _act(self, act: Callable[[], Awaitable[str]]) -> None:
        async def work() -> None:
            try:
                done = await act()
            except ReefError as error:
                self.complain(error)
                return
            self.notify(done, markup=False)
            self.settle()

        self.run_worker(work(), group="act", exit_on_error=False)
