"""Without a daemon every screen says so in the same words; the theme is kept for the next run."""

import asyncio
import math
from datetime import timedelta
from pathlib import Path

import pytest

from reef._protocol import Answer, Call
from reef._sse import Event
from reef.async_client import AsyncClient
from reef.errors import DaemonUnreachable, ReefError, TimedOut, Unauthorized
from reef_cli.tui.app import DARK, LIGHT, ReefApp
from reef_cli.tui.memory import remembered_theme
from reef_cli.tui.messages import Disconnected
from reef_cli.tui.recording import Recording
from reef_cli.tui.replay import ReplayClient, replaying
from reef_cli.tui.screens.base import SETTLE_S
from tests.tui.stage import on_stage


def nobody() -> AsyncClient:
    raise DaemonUnreachable("no daemon answers at http://127.0.0.1:1", hint="start one")


def test_the_body_says_how_to_start_one_and_the_header_is_whole() -> None:
    async def scene() -> None:
        async with on_stage(ReefApp(nobody)) as stage:
            for key in "htsye":
                await stage.press(key)
                await stage.see(
                    "trying again ...", "! no daemon answers at", "answers: start one", "by itself"
                )
                assert "no scenario yet" not in stage.text
            await stage.press("n")
            await stage.see("nobody answers since")

    asyncio.run(scene())


def test_the_theme_is_remembered() -> None:
    async def scene() -> None:
        async with on_stage(ReefApp(nobody)) as stage:
            assert stage.app.theme == DARK
            await stage.press("ctrl+t")
            await stage.until(lambda: remembered_theme() == LIGHT)
        async with on_stage(ReefApp(nobody)) as stage:
            assert stage.app.theme == LIGHT

    asyncio.run(scene())


def test_what_cannot_be_kept_or_read_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "reef").write_text("a file where a folder should be")

    async def scene() -> None:
        async with on_stage(ReefApp(nobody)) as stage:
            await stage.press("ctrl+t")
            assert stage.app.theme == LIGHT

    asyncio.run(scene())
    assert remembered_theme() is None


def test_ages_go_on_while_nothing_is_fetched() -> None:
    connect, now = replaying(Recording.shipped(), math.inf)
    passed = timedelta()

    async def scene() -> None:
        nonlocal passed
        async with on_stage(ReefApp(connect, now=lambda: now() + passed)) as stage:
            await stage.press("s")
            await stage.see("demonstrations")
            assert "demonstrations 2 h" not in stage.text
            passed = timedelta(hours=2)
            await stage.see("demonstrations 2 h")

    asyncio.run(scene())


@pytest.mark.parametrize("error", [TimedOut("no answer in 30 s"), Unauthorized("the token is wrong")])
def test_what_was_asked_for_and_not_done_is_told_while_no_daemon_answers(error: ReefError) -> None:
    """Confirmed before it hung; loading, which nobody asked for, stays quiet."""

    class Hanging(ReplayClient):
        hangs = False

        async def _send(self, call: Call) -> Answer:
            if self.hangs:
                raise error
            return await super()._send(call)

    client = Hanging(Recording.shipped(), speed=math.inf)

    async def scene() -> None:
        async with on_stage(ReefApp(lambda: client, now=client.now)) as stage:
            await stage.press("y")
            await stage.see("creation")
            client.hangs = True
            stage.app.post_message(Disconnected("it hangs"))
            await stage.see("no daemon answers")
            await stage.press("end", "b")
            await stage.see("published again as a new head")
            assert not stage.app._notifications
            await stage.press("enter")
            await stage.told(error.message)

    asyncio.run(scene())


def test_ctrl_c_names_the_key_that_quits() -> None:
    async def scene() -> None:
        async with on_stage(ReefApp(nobody)) as stage:
            heard = stage.hear()
            await stage.press("ctrl+c")
            await stage.until(lambda: heard == ["q quits; the daemon goes on"])

    asyncio.run(scene())


def test_dialogues_say_how_they_end() -> None:
    async def scene() -> None:
        async with on_stage(ReefApp(nobody)) as stage:
            await stage.press("question_mark")
            await stage.see("escape closes, up and down scroll")

    asyncio.run(scene())


def test_the_footer_names_every_mode_where_there_is_room() -> None:
    async def scene() -> None:
        async with on_stage(ReefApp(nobody), (200, 50)) as stage:
            await stage.see("n Runtimes", "l Log", "o Scenario")

    asyncio.run(scene())


def test_an_answer_that_takes_long_is_shown_though_events_go_on() -> None:
    async def scene() -> None:
        async with on_stage(ReefApp(nobody)) as stage:
            await stage.see("answers: start one")
            screen, shown = stage.app.shown()[0], []

            async def fetch() -> str:
                await asyncio.sleep(SETTLE_S * 2)
                return "data"

            screen.fetch, screen.show = fetch, shown.append
            for number in range(30):
                screen.happened(Event(f"b-{number}", "gap"))
                await stage.pilot.pause(SETTLE_S / 3)
            assert shown.count("data") >= 2

    asyncio.run(scene())
