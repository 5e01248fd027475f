"""One screen a file. `SCREENS` names them by mode and imports each only when it is first shown."""

from importlib import import_module
from typing import cast

from reef_cli.tui.screens.base import ReefScreen

SCREENS: dict[str, str] = {
    "home": "home:HomeScreen",
    "steps": "steps:StepsScreen",
    "history": "history:HistoryScreen",
    "tree": "tree:TreeScreen",
    "inbox": "inbox:InboxScreen",
    "traffic": "traffic:TrafficScreen",
    "runtimes": "runtimes:RuntimesScreen",
    "log": "log:LogScreen",
}


def make_screen(mode: str) -> ReefScreen:
    module, _, name = SCREENS[mode].partition(":")
    return cast(ReefScreen, getattr(import_module(f"{__name__}.{module}"), name)())
