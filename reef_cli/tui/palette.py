"""The command palette: every action of the table that works here, by name."""

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from reef_cli.tui.actions import Action, actions_in, works

if TYPE_CHECKING:
    from reef_cli.tui.app import ReefApp


class ReefCommands(Provider):
    @property
    def _reef(self) -> "ReefApp":
        return cast("ReefApp", self.app)

    def _actions(self) -> list[Action]:
        shown = self._reef.shown()
        if not shown:
            return []
        found = actions_in(shown[-1].mode)
        return [action for action in found if "{key}" not in action.id and works(action, shown[-1])]

    async def discover(self) -> Hits:
        for action in self._actions():
            run = partial(self._reef.perform, action.id, action.scope)
            yield DiscoveryHit(action.title, run, help=action.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._actions():
            if (score := max(matcher.match(action.title), matcher.match(action.words))) > 0:
                run = partial(self._reef.perform, action.id, action.scope)
                yield Hit(score, matcher.highlight(action.title), run, help=action.help)
