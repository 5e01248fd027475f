"""The inbox against a real daemon: scoring, taking back, writing, and reading why a report did not count."""

import asyncio
import shlex
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import TextArea

from reef.async_client import AsyncClient
from reef_cli.tui import outbox
from reef_cli.tui.app import ReefApp
from reef_cli.tui.screens import sending
from reef_cli.tui.screens.inbox import InboxScreen
from reef_cli.tui.screens.write import WriteScreen
from reef_cli.tui.widgets.row_list import RowList
from tests.e2e.running import TOKEN, Daemon, running
from tests.e2e.terminal import REEF
from tests.stub_provider import StubProvider
from tests.tui.stage import SMALL, Stage, on_stage, play

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


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("inbox")
    (folder / "reef.toml").write_text(SETTINGS)
    with StubProvider() as stub, running(folder, "--upstream", stub.url, "--model", "m") as found:
        yield found


def inbox(
    daemon: Daemon, scenario: str, scene: Callable[[Stage], Awaitable[None]], size: tuple[int, int] = SMALL
) -> None:
    """Open the inbox of one scenario, go through `scene`, and leave."""

    async def whole(stage: Stage) -> None:
        await stage.until(lambda: bool(stage.app.status))
        stage.app.scenario = scenario
        await stage.press("i")
        await stage.until(lambda: isinstance(stage.app.screen, InboxScreen))
        await scene(stage)

    play(daemon, whole, size)


async def listed(stage: Stage, count: int) -> None:
    await stage.until(lambda: len(stage.app.screen.query_one("#turns", RowList).rows) == count)


async def dialogue(stage: Stage) -> None:
    await stage.until(lambda: isinstance(stage.app.screen, WriteScreen))


def reports(daemon: Daemon, scenario: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.get("/reef/reports", scenario=scenario)["reports"]
    return found


def test_ten_turns_are_scored_with_a_key_each(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "HOLD_S", 0.2)
    receipts = [daemon.ask(f"question {number}", scenario="ten")[1] for number in range(10)]

    async def scene(stage: Stage) -> None:
        await listed(stage, 10)
        await stage.press("plus", "minus", "0", "1", "2", "3", "5", "7", "9", "plus")
        await listed(stage, 0)
        await stage.until(lambda: len(reports(daemon, "ten")) == 10)

    inbox(daemon, "ten", scene)
    scores = {report["references"][0]: report["score"] for report in reports(daemon, "ten")}
    assert [scores[receipt] for receipt in reversed(receipts)] == [1, 0, 0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1]


def test_a_score_is_taken_back_while_it_is_held(daemon: Daemon) -> None:
    for number in range(2):
        daemon.ask(f"question {number}", scenario="undo")

    async def scene(stage: Stage) -> None:
        await listed(stage, 2)
        await stage.press("minus", "plus")
        await stage.see("1, in ")
        await stage.press("z")
        await stage.until(lambda: "1, in" not in stage.text)
        assert "0, in" in stage.text
        await stage.press("z", "z")

    inbox(daemon, "undo", scene)
    assert reports(daemon, "undo") == []


def test_leaving_sends_what_is_held(daemon: Daemon) -> None:
    daemon.ask("question", scenario="leaving")

    async def scene(stage: Stage) -> None:
        await listed(stage, 1)
        await stage.press("7", "q")

    inbox(daemon, "leaving", scene)
    assert [report["score"] for report in reports(daemon, "leaving")] == [0.7]


def test_feedback_goes_to_all_that_are_marked(daemon: Daemon) -> None:
    receipts = {daemon.ask(f"question {number}", scenario="marked")[1] for number in range(4)}

    async def scene(stage: Stage) -> None:
        await listed(stage, 4)
        await stage.press("space", "space", "space", "f")
        await dialogue(stage)
        stage.app.screen.query_one(TextArea).text = "say it in metres"
        await stage.press("tab", "0", "ctrl+s")
        await stage.see("0+text, in")
        await stage.press("c")
        await dialogue(stage)
        await stage.press("4", "2", "ctrl+s", "q")

    inbox(daemon, "marked", scene)
    found = reports(daemon, "marked")
    texts = [report["feedback"] for report in found]
    assert texts.count("say it in metres") == 3
    assert {"correction": "42"} in texts
    assert {reference for report in found for reference in report["references"]} == receipts
    assert [report["score"] for report in found].count(0) == 3


def test_what_is_said_twice_of_a_turn_is_one_report(daemon: Daemon) -> None:
    daemon.ask("question", scenario="merged")

    async def scene(stage: Stage) -> None:
        await listed(stage, 1)
        await stage.press("minus", "f")
        await dialogue(stage)
        await stage.press("n", "o", "ctrl+s", "q")

    inbox(daemon, "merged", scene)
    (report,) = reports(daemon, "merged")
    assert (report["score"], report["feedback"]) == (0, "no")


def test_a_session_is_scored_as_a_whole(daemon: Daemon) -> None:
    with daemon.client(x_reef_scenario="whole", x_reef_tag_session="s-1") as client:
        for greeting in ("hello", "hello again"):
            body = {"model": "m", "messages": [{"role": "user", "content": greeting}]}
            assert client.post("/v1/chat/completions", json=body).status_code == 200
    daemon.ask("without a session", scenario="whole")

    async def scene(stage: Stage) -> None:
        await listed(stage, 3)
        await stage.press("down", "a")
        await stage.see("whole session")
        await stage.press("escape")
        await stage.until(lambda: "whole session" not in stage.text)
        await stage.press("a", "plus", "z")
        await stage.told("took back what was said of 2 turns")
        await stage.press("a", "plus", "q")

    inbox(daemon, "whole", scene)
    (report,) = reports(daemon, "whole")
    assert len(report["references"]) == len(report["pairs"]) == 2


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_why_a_report_did_not_count_is_said(daemon: Daemon, size: tuple[int, int]) -> None:
    scenario = f"why-{size[0]}"
    _, receipt = daemon.ask("question", scenario=scenario)
    daemon.report(receipt, score=0.5)

    async def scene(stage: Stage) -> None:
        await stage.press("r")
        await stage.see("This report did not count.", receipt, "no count", "score_not_a_lesson")

    inbox(daemon, scenario, scene, size)


def test_what_did_not_count_is_said_and_scored_again(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "HOLD_S", 0.2)
    _, receipt = daemon.ask("question", scenario="again")

    async def scene(stage: Stage) -> None:
        await listed(stage, 1)
        await stage.press("5")
        await stage.told("this report does not count")
        await stage.press("r")
        await stage.see("no count")
        await stage.press("minus")
        await stage.until(lambda: len(reports(daemon, "again")) == 2)

    inbox(daemon, "again", scene)
    assert [(report["score"], report["references"]) for report in reports(daemon, "again")] == [
        (0, [receipt]),
        (0.5, [receipt]),
    ]


def test_a_draft_is_kept_and_a_score_out_of_range_refused(daemon: Daemon) -> None:
    daemon.ask("question", scenario="draft")

    async def scene(stage: Stage) -> None:
        await listed(stage, 1)
        await stage.press("f")
        await dialogue(stage)
        await stage.press(*"too long", "escape")
        await stage.until(lambda: isinstance(stage.app.screen, InboxScreen))
        await stage.press("f")
        await dialogue(stage)
        await stage.see("too long")
        await stage.press("tab", "7", "ctrl+s")
        await stage.told("a score is 0 (bad) to 1 (good)")
        await stage.press("backspace", "0", "ctrl+s", "q")

    inbox(daemon, "draft", scene)
    (report,) = reports(daemon, "draft")
    assert (report["score"], report["feedback"]) == (0, "too long")


def test_an_emptied_draft_is_thrown_away(daemon: Daemon) -> None:
    daemon.ask("question", scenario="emptied")

    async def scene(stage: Stage) -> None:
        await listed(stage, 1)
        heard = stage.hear()
        for key in ("escape", "ctrl+s"):
            for keys, said in (("no", "kept as a draft"), (["backspace"] * 2, "draft thrown away")):
                await stage.press("f")
                await dialogue(stage)
                await stage.press("end", *keys, "escape" if "kept" in said else key)
                await stage.until(lambda: isinstance(stage.app.screen, InboxScreen))
                await stage.until(lambda said=said: bool(heard) and said in heard.pop())
        await stage.press("f")
        await dialogue(stage)
        assert stage.app.screen.query_one(TextArea).text == ""
        await stage.press("escape")
        await stage.until(lambda: isinstance(stage.app.screen, InboxScreen))
        assert heard == [], "nothing was kept, nor thrown away"

    inbox(daemon, "emptied", scene)
    assert reports(daemon, "emptied") == []


def test_a_score_of_a_report_shows_how_long_it_is_held(daemon: Daemon) -> None:
    _, receipt = daemon.ask("question", scenario="held")
    daemon.report(receipt, score=0.5, feedback="fine")

    async def scene(stage: Stage) -> None:
        await stage.press("r")
        await stage.see("in line", "score 0.5 fine")
        await stage.press("3")
        await stage.see("now 0.3, in ", " s ")
        await stage.press("z")
        await stage.until(lambda: "now 0.3" not in stage.text)

    inbox(daemon, "held", scene)


def test_a_score_alone_is_taken_from_the_dialogue(daemon: Daemon) -> None:
    daemon.ask("question", scenario="score-alone")

    async def scene(stage: Stage) -> None:
        await listed(stage, 1)
        await stage.press("f")
        await dialogue(stage)
        await stage.press("tab", "1", "ctrl+s", "q")

    inbox(daemon, "score-alone", scene)
    (report,) = reports(daemon, "score-alone")
    assert (report["score"], report["feedback"]) == (1, None)


def test_what_cannot_be_sent_at_the_end_is_left_to_the_app(tmp_path: Path) -> None:
    with StubProvider() as stub, running(tmp_path, "--upstream", stub.url) as away:
        away.ask("question")
        app = ReefApp(lambda: AsyncClient(away.url, token=TOKEN))

        async def scene() -> None:
            async with on_stage(app) as stage:
                await stage.until(lambda: bool(stage.app.status))
                await stage.press("i")
                await stage.until(lambda: isinstance(stage.app.screen, InboxScreen))
                await listed(stage, 1)
                await stage.press("7")
                away.kill()
                await stage.until(lambda: bool(stage.app.away))
                await stage.press("q")

        asyncio.run(scene())
    assert [held.score for held in app.unsent] == [0.7]


class Unheard(AsyncClient):
    """Its reports arrive; what the daemon answers is never heard."""

    async def report(self, *words: Any, **said: Any) -> dict[str, Any]:
        await super().report(*words, **said)
        return await asyncio.Event().wait() and {}


def test_a_report_on_its_way_at_the_end_is_left_to_the_app_and_not_counted_twice(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "HOLD_S", 0.1)
    monkeypatch.setattr(sending, "LEAVE_S", 0.3)
    daemon.ask("question", scenario="hanging")
    app = ReefApp(lambda: Unheard(daemon.url, token=TOKEN))

    async def scene() -> None:
        async with on_stage(app) as stage:
            await stage.until(lambda: bool(stage.app.status))
            stage.app.scenario = "hanging"
            await stage.press("i")
            await stage.until(lambda: isinstance(stage.app.screen, InboxScreen))
            await listed(stage, 1)
            await stage.press("7")
            await stage.until(lambda: len(reports(daemon, "hanging")) == 1)
            await stage.press("q")

    asyncio.run(scene())
    (held,) = app.unsent
    command = [REEF, *shlex.split(held.as_command())[1:]]
    subprocess.run(command, env=daemon.environ, check=True, capture_output=True, timeout=60)
    (report,) = reports(daemon, "hanging")
    assert (report["agent_record_id"], report["score"]) == (held.report_id, 0.7)


def test_a_score_waits_for_a_daemon_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held in sight, taken back, said anew; and sent by itself once the daemon is back."""
    monkeypatch.setattr(outbox, "HOLD_S", 0.2)
    with StubProvider() as stub, running(tmp_path, "--upstream", stub.url) as away:
        for number in range(2):
            away.ask(f"question {number}")
        app = ReefApp(lambda: AsyncClient(home=away.home))

        async def scene() -> None:
            async with on_stage(app) as stage:
                await stage.until(lambda: bool(app.status))
                await stage.press("i")
                await stage.until(lambda: isinstance(app.screen, InboxScreen))
                await listed(stage, 2)
                away.kill()
                await stage.press("minus", "3")
                await stage.see("0, held", "0.3, held", "The daemon is away")
                await stage.press("z")
                await stage.until(lambda: "0.3, held" not in stage.text)
                turns = app.screen.query_one("#turns", RowList)
                assert turns.cursor == 1
                await stage.press("up", "plus")
                await stage.see("1, held")
                away.start()
                await stage.until(lambda: len(reports(away, "default")) == 1, seconds=20)
                await listed(stage, 1)

        asyncio.run(scene())
        (report,) = reports(away, "default")
        assert report["score"] == 1
