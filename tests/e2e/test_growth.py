"""Growing as it is watched and interrupted: its events, and going on after something has changed."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from reef._sse import EventReader
from tests.e2e.running import Daemon, running, wait_for
from tests.e2e.test_crash import hold, key, release_stub
from tests.e2e.test_loop import PROMPT, SENTENCE, configure, right_with_the_sentence
from tests.stub_provider import Fault, StubProvider


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider(right_with_the_sentence) as provider:
        yield provider


def teach(daemon: Daemon, text: str = SENTENCE, **more: Any) -> None:
    _, receipt = daemon.ask(PROMPT, scenario="ready-1")
    daemon.report(receipt, score=0, feedback={"text": text, **more})


@contextmanager
def listening(daemon: Daemon) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Events as they come, in a list that grows."""
    heard: list[tuple[str, dict[str, Any]]] = []
    ready, done = threading.Event(), threading.Event()

    def listen() -> None:
        reader = EventReader()
        with daemon.client() as client, client.stream("GET", "/reef/events") as answer:
            try:
                for chunk in answer.iter_bytes():
                    heard.extend((event.name, event.data) for event in reader.feed(chunk))
                    ready.set()
                    if done.is_set():
                        return
            except httpx.TransportError:
                return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert ready.wait(10)
    yield heard
    done.set()


def named(heard: list[tuple[str, dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    return [data for each, data in heard if each == name]


def test_events_tell_what_was_consumed_measured_and_served(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    with running(tmp_path) as daemon, listening(daemon) as heard:
        teach(daemon)
        step = daemon.step("ready-1", 1, until=("done",))
        daemon.post("/reef/scenarios/ready-1/rollback", {"release_id": "step:0"})
        releases = wait_for(
            lambda: found if len(found := named(heard, "release")) == 3 else None, "three releases"
        )
        assert [(one["operation"], one["step"]) for one in releases] == [
            ("creation", 0),
            ("training", 1),
            ("rollback", 2),
        ]
        assert releases[1]["release_id"] == step["release_id"]
        assert releases[1]["content_id"] == step["content_id"]
        assert {(one["current"], one["pending"]) for one in releases} == {(True, False)}

        (unit,) = step["batch"]
        consumed = [one for one in named(heard, "verdict") if one["state"] == "consumed"]
        assert [(one["report"], one["receipt"], one["step"]) for one in consumed] == [
            (unit["report"], unit["receipts"][0], 1)
        ]

        episodes = named(heard, "episode")
        assert {key(one): one["score"] for one in episodes} == {
            key(one): one["score"] for one in step["episodes"]
        }
        assert [one["done"] for one in episodes] == list(range(1, len(episodes) + 1))
        assert {one["total"] for one in episodes} == {24}
        assert all(len(json.dumps(one)) < 400 for one in episodes)


PLAIN = """
from dataclasses import replace
from recipes.harness_evolve import HarnessEvolve

class Plain(HarnessEvolve):
    async def propose(self, context):
        return replace(await super().propose(context), reason=" \\n", title="{title}")
"""


@pytest.mark.parametrize(
    ("title", "outcome", "told"),
    [("\\nSay less\\nmuch less", "select", "Say less"), (" ", "reject", "neither a reason nor a title")],
)
def test_a_recipe_that_gives_no_reason(
    tmp_path: Path, stub: StubProvider, title: str, outcome: str, told: str
) -> None:
    configure(tmp_path, stub)
    (tmp_path / "plain.py").write_text(PLAIN.format(title=title))
    reef = tmp_path / "reef.toml"
    reef.write_text(reef.read_text().replace('"harness_evolve"', '"plain:Plain"'))
    with running(tmp_path) as daemon:
        teach(daemon)
        step = daemon.step("ready-1", 1, until=("done",))
        assert step["outcome"] == outcome, step
        rows = daemon.get("/reef/scenarios/ready-1/releases")["releases"]
        assert told in next(row for row in rows if row["step"] == 1)["message"]


def test_a_promotion_is_an_event(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, publish="review")
    with running(tmp_path) as daemon, listening(daemon) as heard:
        teach(daemon)
        daemon.step("ready-1", 1, until=("waiting",))
        daemon.post("/reef/scenarios/ready-1/promote", {"release_id": "step:1"})
        releases = wait_for(
            lambda: found if len(found := named(heard, "release")) == 3 else None, "three releases"
        )
        told = [(one["operation"], one["current"], one["pending"]) for one in releases]
        assert told == [("creation", True, False), ("training", False, True), ("promote", True, False)]


def test_tasks_that_changed_while_a_step_waited_are_measured_anew(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        hold(stub, "part ", after=6)
        daemon.report(receipt, score=0, feedback=SENTENCE)
        daemon.step("ready-1", 1, until=("evaluating",))
        ran = wait_for(
            lambda: found if len(found := daemon.get("/reef/steps/ready-1/1")["episodes"]) >= 4 else None,
            "some episodes",
        )
        daemon.kill()
        edited = ran[0]["task"]
        number = edited.removeprefix("ready-")
        tasks = tmp_path / "tasks.toml"
        tasks.write_text(tasks.read_text().replace(f"part {number} is ready", f"piece {number} is done"))
        release_stub(stub)
        daemon.start()
        step = daemon.step("ready-1", 1, until=("done",))
        assert step["outcome"] == "select", step["decision"]
        before = {key(one): one["started_at"] for one in ran}
        after = {key(one): one for one in step["episodes"]}
        for name, started in before.items():
            assert (after[name]["started_at"] == started) == (name[0] != edited), name
        assert after[edited, "candidate", 0]["answer"] == f"piece {number} is done"


def test_a_step_that_failed_goes_on_where_it_was(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        seen = iter(range(1000))
        stub.answer = lambda asked: right_with_the_sentence(asked) if next(seen) < 5 else Fault(500)
        daemon.report(receipt, score=0, feedback=SENTENCE)
        step = daemon.step("ready-1", 1, until=("done",))
        assert step["outcome"] == "error"
        ran = {key(one): one["started_at"] for one in step["episodes"] if one["status"] != "error"}
        assert ran
        release_stub(stub)
        daemon.post("/reef/steps/ready-1/1/run", {}, status=202)
        again = wait_for(
            lambda: row if (row := daemon.step("ready-1", 1))["outcome"] == "select" else None, "the release"
        )
        assert again["candidate_id"] == step["candidate_id"]
        assert ran.items() <= {key(one): one["started_at"] for one in again["episodes"]}.items()
        assert again["error"] is None


def test_a_step_that_failed_begins_anew_on_another_base(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    with running(tmp_path) as daemon:
        teach(daemon)
        daemon.step("ready-1", 1, until=("done",))
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        stub.answer = lambda asked: Fault(500)
        daemon.report(receipt, score=0, feedback="Be kind.")
        failed = daemon.step("ready-1", 2, until=("done",))
        assert failed["outcome"] == "error"
        stub.answer = right_with_the_sentence
        daemon.post("/reef/scenarios/ready-1/rollback", {"release_id": "step:0"})
        daemon.post("/reef/steps/ready-1/2/run", {}, status=202)
        again = wait_for(
            lambda: row if (row := daemon.step("ready-1", 2))["outcome"] == "reject" else None, "the decision"
        )
        assert again["base_content_id"] != failed["base_content_id"]
        assert again["content_id"] != failed["content_id"]
        assert again["metrics"]["current_scores"].keys() == again["metrics"]["candidate_scores"].keys()
        assert set(again["metrics"]["current_scores"].values()) == {0.0}, "of the older base"


def test_a_model_that_answers_nonsense_leaves_the_batch_to_the_next_proposer(
    tmp_path: Path, stub: StubProvider
) -> None:
    configure(tmp_path, stub)
    reef = tmp_path / "reef.toml"
    reef.write_text(
        reef.read_text().replace('["feedback", "demonstrations", "reflect"]', '["reflect", "feedback"]')
    )
    stub.answer = lambda asked: "no idea" if "improve" in asked.system else right_with_the_sentence(asked)
    with running(tmp_path) as daemon:
        teach(daemon)
        step = daemon.step("ready-1", 1, until=("done",))
        assert (step["outcome"], step["proposer"]) == ("select", "feedback"), step["decision"]
        assert any(note.startswith("reflect: refused: ") for note in step["notes"])
        assert step["notes"][0].startswith("expected: ")


def test_a_retry_tells_that_the_verdict_on_what_it_replaces_changed(
    tmp_path: Path, stub: StubProvider
) -> None:
    configure(tmp_path, stub)
    words = ("--recipe.ready.batch_size", "2")
    with running(tmp_path, *words) as daemon, listening(daemon) as heard:
        body = {"model": "m", "messages": [{"role": "user", "content": PROMPT}]}
        with daemon.client(x_reef_scenario="ready-1", x_reef_tag_run="one") as client:
            receipt = client.post("/v1/chat/completions", json=body).headers["x-reef-agent-record-id"]
            report = daemon.report(receipt, score=0, feedback=SENTENCE)["agent_record_id"]
            client.post("/v1/chat/completions", json=body)
        told = wait_for(lambda: found if len(found := named(heard, "verdict")) == 2 else None, "the verdicts")
        assert [(one["state"], one["reason"]) for one in told] == [
            ("eligible", "waiting_for_batch"),
            ("ineligible", "superseded"),
        ]
        assert (told[1]["report"], told[1]["receipt"]) == (report, receipt)


def test_a_scenario_that_could_not_be_archived_grows_on(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        with closing(sqlite3.connect(daemon.home / "reef.db")) as db, db:
            db.execute(
                "CREATE TRIGGER cannot BEFORE UPDATE OF archived_at ON scenarios "
                "BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END"
            )
        db.close()
        with daemon.client() as client:
            assert client.delete("/reef/scenarios/ready-1").status_code == 503
        daemon.report(receipt, score=0, feedback=SENTENCE)
        assert daemon.step("ready-1", 1, until=("done",))["outcome"] == "select"


def test_a_step_that_is_cancelled_is_so_after_a_crash(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        hold(stub, "part ")
        daemon.report(receipt, score=0, feedback=SENTENCE)
        daemon.step("ready-1", 1, until=("evaluating",))
        daemon.post("/reef/steps/ready-1/1/cancel", {}, status=202)
        daemon.kill()
        release_stub(stub)
        daemon.start()
        step = daemon.step("ready-1", 1, until=("done",))
        assert (step["outcome"], step["decision"]) == ("skip", "cancelled by a person")
