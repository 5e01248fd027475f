"""Traffic, a record's detail, runtimes and log, against a real daemon."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reef.async_client import AsyncClient
from reef_cli.tui import contents
from reef_cli.tui.app import ReefApp
from reef_cli.tui.screens.record import RecordScreen
from reef_cli.tui.widgets.row_list import RowList
from tests.e2e.running import TOKEN, Daemon, free_port, running
from tests.stub_provider import Asked, Fault, Reply, StubProvider, ToolCall
from tests.tui.stage import Stage, on_stage, play

SCENARIO = "work"
HOSTILE = "\x1b[31mred \x1b]0;owned\x07 [bold]markup[/bold] \u202egnp.exe 日本語 🎉"
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 3000}}


def answer(asked: Asked) -> str | Reply | Fault:
    if "tool" in asked.user:
        return Reply(HOSTILE, (ToolCall("search", {"q": "[red]x[/red]"}),), thinking="let me think")
    return Fault(500, "the stub broke") if "fail" in asked.user else f"echo: {asked.user}"


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProvider]:
    with StubProvider(answer) as provider:
        yield provider


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, stub: StubProvider) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("traffic")
    (folder / "reef.toml").write_text('[[scenario]]\nmatch = "*"\nrecipe = "record"\n')
    with running(folder, "--upstream", stub.url, "--model", "m") as found:
        for number in range(3):
            found.ask(f"question {number}", scenario="work")
        found.ask("elsewhere", scenario="other")
        asking = {"content": [{"type": "text", "text": "use the tool"}, PICTURE, {"type": "hologram"}]}
        body = {"model": "opus", "max_tokens": 9, "messages": [{"role": "user"} | asking]}
        with found.client(x_reef_scenario="work", x_reef_tag_session="s-1") as client:
            told = client.post("/v1/messages", json=body)
            found.report(told.headers["x-reef-agent-record-id"], score=1, feedback="well done")
            client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "fail"}]})
        yield found


async def traffic(stage: Stage) -> None:
    await stage.until(lambda: bool(stage.app.status))
    stage.app.scenario = "work"
    await stage.press("t")
    await stage.see("records of scenario work")


def rows(stage: Stage) -> RowList:
    return stage.app.screen.query_one(RowList)


def test_traffic_is_filtered(daemon: Daemon) -> None:
    async def scene(stage: Stage) -> None:
        await traffic(stage)
        await stage.see("failed", "opus", "report")
        await stage.press("slash", *"kind:turn")
        await stage.see("5 match")
        assert "report" not in stage.text.partition("TIME")[2]
        await stage.press(*" status:failed", "enter")
        await stage.see("1 match")
        await stage.press("escape")
        await stage.until(lambda: len(rows(stage).rows) == 6)
        await stage.press("slash", *"session:s-1 opus", "enter")
        await stage.see("1 match")
        await stage.press("escape", "a")
        await stage.see("of all scenarios", "other m", "SCENARIO")

    play(daemon, scene)


def test_a_filter_finds_what_was_said(daemon: Daemon) -> None:
    """In the prompt, in the answer and in a report; page by page where there is more."""

    async def scene(stage: Stage) -> None:
        await traffic(stage)
        await stage.press("slash", *"QUESTION", "enter")
        await stage.see("3 match")
        await stage.press("escape", "slash", *"markup", "enter")
        await stage.see("1 match")
        await stage.press("escape", "slash", *"done", "enter")
        await stage.see("1 match", "score 1:")

    play(daemon, scene, (120, 40))
    records = f"/reef/scenarios/{SCENARIO}/records"
    first = daemon.get(records, text="echo: question 1", limit=1)
    assert first["records"] == []
    rest = daemon.get(records, text="Echo: Question 1", after=first["next_after"])
    assert [record["payload"]["messages"][0]["content"] for record in rest["records"]] == ["question 1"]


def test_a_search_misses_nothing_that_began_early_and_ended_late(
    daemon: Daemon, stub: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page by page, and then only what came since."""
    monkeypatch.setattr(contents, "AT_ONCE", 10)
    begun, over = threading.Event(), threading.Event()

    async def slow(asked: Asked) -> str:
        if "long" in asked.user:
            begun.set()
            await asyncio.to_thread(over.wait, 20)
        return "said"

    monkeypatch.setattr(stub, "answer", slow)
    with ThreadPoolExecutor(1) as pool:
        stream = pool.submit(daemon.ask, "a long one", scenario="long")
        assert begun.wait(20)
        for number in range(13):
            daemon.ask(f"needle {number}", scenario="long")
        over.set()
        stream.result(20)
    for number in range(9):
        daemon.ask(f"hay {number}", scenario="long")
    asked: list[dict[str, Any]] = []

    class Listening(AsyncClient):
        async def records(self, *names: Any, **query: Any) -> dict[str, Any]:
            if query.get("text"):
                asked.append(query)
            return await super().records(*names, **query)

    app = ReefApp(lambda: Listening(daemon.url, token=TOKEN))

    async def scene() -> None:
        async with on_stage(app) as stage:
            await stage.until(lambda: bool(app.status))
            app.scenario = "long"
            await stage.press("t")
            await stage.see("23 records of scenario long")
            await stage.press("slash", *"needle", "enter")
            await stage.see("13 match `needle` in 23 records of scenario long (a: all)")
            asked.clear()
            daemon.ask("one more needle", scenario="long")
            await stage.see("14 match `needle` in 24 records")
            assert {query["order"] for query in asked} == {"asc"}

    asyncio.run(scene())


def test_how_far_what_was_said_was_looked_through_is_said(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "AT_ONCE", 2)
    monkeypatch.setattr(contents, "SEARCHED", 4)

    async def scene(stage: Stage) -> None:
        await traffic(stage)
        await stage.press("slash", *"question", "enter")
        await stage.see("1 match `question` in 6 records (what was said: 4) of scenario work")
        await stage.press("escape", "slash", *"kind:turn", "enter")
        await stage.see("5 match `kind:turn` in 6 records of scenario work")

    play(daemon, scene)


def test_new_records_come_by_themselves(daemon: Daemon) -> None:
    async def scene(stage: Stage) -> None:
        await traffic(stage)
        stage.app.scenario = "live"
        daemon.ask("first", scenario="live")
        await stage.until(lambda: len(rows(stage).rows) == 1)
        key = rows(stage).key
        daemon.ask("second", scenario="live")
        await stage.until(lambda: len(rows(stage).rows) == 2)
        assert rows(stage).key == key

    play(daemon, scene, (120, 40))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_a_record_with_tools_and_hostile_codes_opens(daemon: Daemon, size: tuple[int, int]) -> None:
    async def scene(stage: Stage) -> None:
        await traffic(stage)
        await stage.press("slash", *"opus", "enter", "enter")
        await stage.see("use the tool", "[image, image/png, 3 kB]", "price unknown")
        await stage.press("end")
        await stage.see("-> calls search", "[red]x[/red]", "(thinking)", "let me think")
        shown = stage.text
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)
        assert "[bold]markup[/bold]" in shown
        assert "日本語 🎉" in shown
        await stage.press("home")
        await stage.see("[image, image/png, 3 kB]", "[hologram, 20 B]", "session s-1", "tokens in")
        await stage.press("x")
        await stage.see("served by release", "well done", "score 1")
        await stage.press("r")
        await stage.see('"max_tokens": 9')
        await stage.press("v", "v")
        await stage.see('"type": "message"')
        await stage.press("escape")
        await stage.see("1 match")

    play(daemon, scene, size)


def test_a_click_turns_to_a_view(daemon: Daemon) -> None:
    async def scene(stage: Stage) -> None:
        await traffic(stage)
        await stage.press("slash", *"opus", "enter", "enter")
        await stage.see("use the tool")
        for name, shown in (
            ("story", "served by release"),
            ("received", "max_tokens"),
            ("conversation", "use"),
        ):
            line = stage.text.splitlines()
            at = next(number for number, text in enumerate(line) if f" {name} " in text)
            await stage.pilot.click(offset=(line[at].index(name), at))
            await stage.see(f"[{name}]", shown)

    play(daemon, scene)


def test_a_report_opens_with_what_it_says_and_what_became_of_it(daemon: Daemon) -> None:
    async def scene(stage: Stage) -> None:
        await traffic(stage)
        await stage.press("slash", *"kind:report", "enter", "enter")
        await stage.see("score 1", "feedback: well done", "This report did not count.", "only records")
        await stage.press("v")
        await stage.see("feedback: well done")

    play(daemon, scene)


def test_an_error_is_said_in_the_detail(daemon: Daemon) -> None:
    async def scene(stage: Stage) -> None:
        await traffic(stage)
        await stage.press("slash", *"status:failed", "enter", "enter")
        await stage.until(lambda: isinstance(stage.app.screen, RecordScreen))
        await stage.see("turn failed", "! ", "HTTP 500")

    play(daemon, scene)


def test_runtimes_say_who_answers_and_why(daemon: Daemon) -> None:
    async def scene(stage: Stage) -> None:
        await stage.press("n")
        await stage.see("Who answers", "as configured", "main  ready", "can be written", "of $1.00")
        await stage.see(str(daemon.home), "up for")

    play(daemon, scene, (120, 40))


def test_runtimes_say_what_mends_one_that_is_down(tmp_path: Path) -> None:
    upstream = f'[[upstream]]\nname = "gone"\nbase_url = "http://127.0.0.1:{free_port()}"\nmodel = "m"\n'
    (tmp_path / "reef.toml").write_text(upstream)
    with running(tmp_path) as daemon, daemon.client() as client:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        assert client.post("/v1/chat/completions", json=body).status_code == 502
        (told,) = daemon.get("/reef/status")["serving"]["upstreams"]

        async def scene(stage: Stage) -> None:
            await stage.press("n")
            await stage.see("gone  down", told["detail"][:30], told["hint"][:30])

        play(daemon, scene)


def test_runtimes_tell_how_many_wait_for_their_turn(tmp_path: Path) -> None:
    narrow = '[[upstream]]\nname = "narrow"\nbase_url = "{}"\nmodel = "m"\nconcurrency = 1\n'
    with StubProvider() as slow:
        slow.delay_s = 8.0
        (tmp_path / "reef.toml").write_text(narrow.format(slow.url))
        with running(tmp_path) as busy, ThreadPoolExecutor(3) as pool:
            asked = [pool.submit(busy.ask, f"question {number}") for number in range(3)]

            async def scene(stage: Stage) -> None:
                await stage.until(lambda: busy.get("/reef/status")["serving"]["upstreams"][0]["waiting"] == 2)
                await stage.press("n")
                await stage.see("narrow", "2 wait for their turn")
                slow.delay_s = 0.0

            play(busy, scene)
            for one in asked:
                one.result(20)


def test_the_log_follows_filters_and_starts_anew_with_the_daemon(daemon: Daemon) -> None:
    async def scene(stage: Stage) -> None:
        await stage.press("l")
        await stage.see("INFO reef", "follows")
        await stage.press("v", "v")
        await stage.see("warning and worse")
        assert "INFO reef" not in stage.text
        await stage.press("v", "v")
        await stage.see("INFO reef", "all levels")
        daemon.kill()
        await stage.see("no daemon answers")
        daemon.start()
        await stage.until(lambda: not stage.app.away)
        await stage.see("INFO reef")

    play(daemon, scene)
