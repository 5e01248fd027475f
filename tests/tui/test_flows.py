"""What people do with it, against a real daemon, at 80x24."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef_cli.tui.widgets.row_list import RowList
from reef_cli.tui.widgets.view_names import ViewNames
from tests.e2e.running import Daemon, running
from tests.e2e.test_loop import PROMPT, SENTENCE, configure, right_with_the_sentence
from tests.stub_provider import StubProvider
from tests.tui.stage import Stage, play

SCENARIO = "ready-1"


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as provider:
        provider.answer = right_with_the_sentence
        yield provider


@pytest.fixture
def daemon(tmp_path: Path, stub: StubProvider) -> Iterator[Daemon]:
    configure(tmp_path, stub, publish="review")
    with running(tmp_path) as found:
        yield found


def complain(daemon: Daemon, feedback: str) -> None:
    _, receipt = daemon.ask(PROMPT, scenario=SCENARIO)
    daemon.report(receipt, score=0, feedback=feedback)


def test_a_waiting_candidate_is_read_and_promoted(daemon: Daemon) -> None:
    """Within four keys from the start: its diff, its evaluation task by task, and promoting it."""
    complain(daemon, SENTENCE)
    daemon.step(SCENARIO, 1)

    async def scene(stage: Stage) -> None:
        await stage.see(SCENARIO, "1 to review")
        await stage.press("s")
        await stage.see("waits: review", "feedback")
        await stage.press("enter")
        await stage.see("wins needed", "p promotes it", "p Promote", "step 1 of ready-1: waits: review")
        await stage.press("d")
        await stage.see(f"+ {SENTENCE}", "[diff]")
        await stage.press("escape", "d")
        await stage.see(f"+ {SENTENCE}", "[diff]")
        assert await stage.pilot.click(ViewNames, offset=(stage.text.splitlines()[1].index("story"), 0))
        await stage.see("wins needed", "[story]")
        await stage.press("g")
        await stage.see("[episodes]", "TASK", "win", "the answer is as expected")
        await stage.press("p")
        await stage.see("becomes a release of")
        assert daemon.get(f"/reef/scenarios/{SCENARIO}/releases")["releases"][0]["pending"]
        heard = stage.hear()
        await stage.press("enter")
        await stage.until(lambda: bool(heard))
        served = daemon.get("/reef/status")["scenarios"][SCENARIO]["release_id"]
        assert heard[0].endswith(f"was applied: release {served[:10]} is served")
        assert daemon.ask(PROMPT, scenario=SCENARIO)[0] == "reef is ready"
        await stage.until(lambda: "p Promote" not in stage.text)
        await stage.press("escape", "y")
        await stage.see("served", "promote")

    play(daemon, scene)


def test_a_step_is_watched_to_its_decision(daemon: Daemon, stub: StubProvider) -> None:
    async def scene(stage: Stage) -> None:
        stub.delay_s = 4.0
        complain(daemon, SENTENCE)
        await stage.see("evaluating")
        await stage.press("s")
        await stage.until(lambda: listed(stage, "#steps"))
        await stage.press("enter")
        await stage.see("step 1  evaluating", "episodes 0 of ")
        stub.delay_s = 0.5
        await stage.until(lambda: bool(re.search(r"episodes [1-9]\d* of", stage.text)), seconds=30.0)
        stub.delay_s = 0.0
        await stage.see("8 wins, 0 losses, 0 ties", "p promotes it")
        assert not re.search(r"episodes \d+ of", stage.text)

    play(daemon, scene)


def test_why_a_candidate_was_rejected(daemon: Daemon) -> None:
    complain(daemon, "Be kind.")
    daemon.step(SCENARIO, 1, until=("done",))

    async def scene(stage: Stage) -> None:
        await stage.press("s")
        await stage.see("no gate task changed")
        await stage.press("end", "enter")
        await stage.see("done: reject", "no gate task changed")
        assert "p Promote" not in stage.text
        await stage.press("y", "a")
        await stage.see("not out")

    play(daemon, scene)


def test_rejecting_with_a_reason(daemon: Daemon) -> None:
    complain(daemon, SENTENCE)
    daemon.step(SCENARIO, 1)

    async def scene(stage: Stage) -> None:
        await stage.press("y")
        await stage.see("waits")
        await stage.press("x")
        await stage.see("never served")
        await stage.press(*"strict", "enter")
        await stage.until(
            lambda: not daemon.get(f"/reef/scenarios/{SCENARIO}/releases")["releases"][0]["pending"]
        )

    play(daemon, scene)
    assert "strict" in daemon.get(f"/reef/steps/{SCENARIO}/1")["decision"]


def releases(stage: Stage) -> RowList:
    return stage.app.screen.query_one("#releases", RowList)


def listed(stage: Stage, rows: str) -> bool:
    """Whether this list is on the screen and has rows."""
    return any(found.rows for found in stage.app.screen.query(rows).results(RowList))


def test_rolling_back_and_comparing(daemon: Daemon) -> None:
    complain(daemon, SENTENCE)
    daemon.step(SCENARIO, 1)
    daemon.post(f"/reef/scenarios/{SCENARIO}/promote", {"release_id": "step:1"})

    async def scene(stage: Stage) -> None:
        await stage.press("y")
        await stage.see("served", "creation")
        heard = stage.hear()
        await stage.press("space")
        await stage.until(lambda: heard == ["now mark the second"])
        await stage.until(lambda: releases(stage).rows[0].marked)
        await stage.press("down")
        await stage.until(lambda: releases(stage).cursor == 1)
        await stage.press("space")
        await stage.see("compare", f"+ {SENTENCE}")
        await stage.press("w")
        await stage.see(SENTENCE[:20])
        await stage.press("escape", "end", "b")
        await stage.see("published again as a new head")
        await stage.press("y")
        await stage.see("rollback")
        await stage.press("h")
        await stage.see("rolled back ")

    play(daemon, scene)
    assert daemon.ask(PROMPT, scenario=SCENARIO)[0] != "reef is ready"


def test_it_survives_a_restart_of_the_daemon(daemon: Daemon) -> None:
    async def scene(stage: Stage) -> None:
        complain(daemon, "Be kind.")
        await stage.see(SCENARIO)
        daemon.kill()
        await stage.see("no daemon answers; trying again")
        await stage.press("n")
        await stage.see("nobody answers since")
        assert "Storage" not in stage.text
        await stage.press("l", "h")
        daemon.start()
        await stage.see("main (m) ready", seconds=20)
        daemon.ask(PROMPT, scenario="second")
        await stage.see("second")

    play(daemon, scene)


def test_help_and_palette_know_what_works_here(daemon: Daemon) -> None:
    daemon.ask(PROMPT, scenario=SCENARIO)

    async def scene(stage: Stage) -> None:
        await stage.press("y", "question_mark")
        await stage.see("Keys in history", "Serve again (check out)", "Promote")
        daemon.post(f"/reef/scenarios/{SCENARIO}/rollback", {"release_id": "step:0"})
        await stage.press("escape")
        await stage.see("rollback")
        await stage.press("end", "ctrl+p")
        await stage.press(*"roll")
        await stage.see("Serve again (check out)")

    play(daemon, scene, size=(100, 40))


def test_the_tree_by_entry_and_as_files(daemon: Daemon) -> None:
    daemon.ask(PROMPT, scenario=SCENARIO)

    async def scene(stage: Stage) -> None:
        await stage.press("e")
        await stage.see("style", "Answer briefly.")
        await stage.press("v")
        await stage.see("rules/style.md", "reef.json")

    play(daemon, scene)


def test_choosing_a_scenario(daemon: Daemon) -> None:
    for name in ("ready-1", "ready-2"):
        daemon.ask(PROMPT, scenario=name)

    async def scene(stage: Stage) -> None:
        await stage.see("ready-1", "ready-2")
        assert stage.app.scenario == "ready-2", "the latest traffic is there"
        await stage.press("up")
        await stage.until(lambda: stage.app.scenario == "ready-1")
        await stage.see("home  ready-1", "ready-1  recipe")
        await stage.press("o", "down", "enter")
        await stage.until(lambda: stage.app.scenario == "ready-2")
        await stage.see("ready-2  recipe")
        await stage.press("t")
        await stage.see("scenario ready-2")


def test_a_letter_opens_the_list_of_a_mode_and_not_what_was_open_in_it(daemon: Daemon) -> None:
    daemon.ask(PROMPT, scenario=SCENARIO)

    async def scene(stage: Stage) -> None:
        await stage.press("t")
        await stage.see("of scenario")
        await stage.press("enter")
        await stage.see("[conversation]")
        await stage.press("t")
        await stage.see("of scenario")
        await stage.press("enter")
        await stage.see("[conversation]")
        await stage.press("h")
        await stage.see("recipe")
        await stage.press("t")
        await stage.see("of scenario")

    play(daemon, scene)
