"""The inbox against a real daemon: scoring, taking back, writing, and reading why a report did not count."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from reef_cli.tui import outbox
from reef_cli.tui.screens.inbox import InboxScreen
from reef_cli.tui.screens.write import WriteScreen
from reef_cli.tui.widgets.row_list import RowList
from tests.e2e.running import Daemon, running
from tests.stub_provider import StubProvider
from tests.tui.piloting import app_for, screen_text, until

SETTINGS = """
[[scenario]]
match = "*"
recipe = "grow"
[recipe.grow]
use = "harness_evolve"
adapter = "chat"
proposers = ["feedback"]
batch_size = 100
"""
Flow = Callable[[Pilot[Any], InboxScreen], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("inbox")
    (folder / "reef.toml").write_text(SETTINGS)
    with StubProvider() as stub, running(folder, "--upstream", stub.url, "--model", "m") as found:
        yield found


def inbox(daemon: Daemon, scenario: str, flow: Flow, *, size: tuple[int, int] = (80, 24)) -> None:
    """Open the inbox of one scenario, go through `flow`, and leave."""

    async def main() -> None:
        app = app_for(daemon)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.status, "the status")
            app.scenario = scenario
            await pilot.press("i")
            screen = await until(
                pilot, lambda: app.screen if isinstance(app.screen, InboxScreen) else None, "the inbox"
            )
            await flow(pilot, screen)

    asyncio.run(main())


def turns(screen: InboxScreen) -> RowList:
    return screen.query_one("#turns", RowList)


async def listed(pilot: Pilot[Any], screen: InboxScreen, count: int) -> None:
    await until(pilot, lambda: len(turns(screen).rows) == count, f"{count} turns")


def reports(daemon: Daemon, scenario: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.get("/reef/reports", scenario=scenario)["reports"]
    return found


def test_ten_turns_are_scored_with_a_key_each(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "HOLD_S", 0.2)
    for number in range(10):
        daemon.ask(f"question {number}", scenario="ten")

    async def flow(pilot: Pilot[Any], screen: InboxScreen) -> None:
        await listed(pilot, screen, 10)
        await pilot.press("plus", "minus", "0", "1", "2", "3", "5", "7", "9", "plus")
        await listed(pilot, screen, 0)
        await until(pilot, lambda: len(reports(daemon, "ten")) == 10, "ten reports")

    inbox(daemon, "ten", flow)
    scores = [report["score"] for report in reversed(reports(daemon, "ten"))]
    assert scores == [1, 0, 0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1]


def test_a_score_is_taken_back_while_it_is_held(daemon: Daemon) -> None:
    for number in range(2):
        daemon.ask(f"question {number}", scenario="undo")

    async def flow(pilot: Pilot[Any], screen: InboxScreen) -> None:
        await listed(pilot, screen, 2)
        await pilot.press("minus", "plus")
        await until(pilot, lambda: "1, in 4 s" in screen_text(pilot.app), "the held score")
        await pilot.press("z")
        await until(pilot, lambda: "1, in" not in screen_text(pilot.app), "the score taken back")
        assert "0, in" in screen_text(pilot.app)
        await pilot.press("z", "z")

    inbox(daemon, "undo", flow)
    assert reports(daemon, "undo") == []


def test_leaving_sends_what_is_held(daemon: Daemon) -> None:
    daemon.ask("question", scenario="leaving")

    async def flow(pilot: Pilot[Any], screen: InboxScreen) -> None:
        await listed(pilot, screen, 1)
        await pilot.press("7", "q")

    inbox(daemon, "leaving", flow)
    assert [report["score"] for report in reports(daemon, "leaving")] == [0.7]


def test_feedback_goes_to_all_that_are_marked(daemon: Daemon) -> None:
    receipts = {daemon.ask(f"question {number}", scenario="marked")[1] for number in range(4)}

    async def flow(pilot: Pilot[Any], screen: InboxScreen) -> None:
        await listed(pilot, screen, 4)
        await pilot.press("space", "space", "space", "f")
        await until(pilot, lambda: isinstance(pilot.app.screen, WriteScreen), "the dialogue")
        pilot.app.screen.query_one(TextArea).text = "say it in metres"
        await pilot.press("tab", "0", "ctrl+s")
        await until(pilot, lambda: screen.outbox, "the held reports")
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, WriteScreen), "the dialogue")
        await pilot.press("4", "2", "ctrl+s", "q")

    inbox(daemon, "marked", flow)
    found = reports(daemon, "marked")
    texts = [report["feedback"] for report in found]
    assert texts.count("say it in metres") == 3
    assert {"correction": "42"} in texts
    assert {reference for report in found for reference in report["references"]} == receipts
    assert [report["score"] for report in found].count(0) == 3


def test_what_is_said_twice_of_a_turn_is_one_report(daemon: Daemon) -> None:
    daemon.ask("question", scenario="merged")

    async def flow(pilot: Pilot[Any], screen: InboxScreen) -> None:
        await listed(pilot, screen, 1)
        await pilot.press("minus", "f")
        await until(pilot, lambda: isinstance(pilot.app.screen, WriteScreen), "the dialogue")
        await pilot.press("n", "o", "ctrl+s", "q")

    inbox(daemon, "merged", flow)
    (report,) = reports(daemon, "merged")
    assert (report["score"], report["feedback"]) == (0, "no")


def test_a_session_is_scored_as_a_whole(daemon: Daemon) -> None:
    with daemon.client(x_reef_scenario="whole", x_reef_tag_session="s-1") as client:
        for _ in range(2):
            body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
            assert client.post("/v1/chat/completions", json=body).status_code == 200
    daemon.ask("without a session", scenario="whole")

    async def flow(pilot: Pilot[Any], screen: InboxScreen) -> None:
        await listed(pilot, screen, 3)
        await pilot.press("down", "a")
        await until(pilot, lambda: "whole session" in screen_text(pilot.app), "what comes next")
        await pilot.press("plus", "q")

    inbox(daemon, "whole", flow)
    (report,) = reports(daemon, "whole")
    assert len(report["references"]) == len(report["pairs"]) == 2


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_why_a_report_did_not_count_is_said(daemon: Daemon, size: tuple[int, int]) -> None:
    scenario = f"why-{size[0]}"
    _, receipt = daemon.ask("question", scenario=scenario)
    daemon.report(receipt, score=0.5)

    async def flow(pilot: Pilot[Any], screen: InboxScreen) -> None:
        await pilot.press("r")
        await until(pilot, lambda: "This report did not count." in screen_text(pilot.app), "the reason")
        shown = screen_text(pilot.app)
        assert receipt in shown
        assert "no count" in shown
        assert "score_not_a_lesson" in shown.replace("\n", "")

    inbox(daemon, scenario, flow, size=size)
