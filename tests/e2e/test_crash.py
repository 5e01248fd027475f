"""`kill -9` at any instant: nothing acknowledged is lost, nothing is counted twice, nobody has to repair."""

import random
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.running import Daemon, running, wait_for
from tests.e2e.test_loop import PROMPT, SENTENCE, configure, right_with_the_sentence
from tests.processes import with_words
from tests.stub_provider import Answer, Asked, StubProvider

HELD_S = 600.0


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider(right_with_the_sentence) as provider:
        yield provider


def settle(daemon: Daemon, *, seconds: float = 60.0) -> list[dict[str, Any]]:
    """All steps, once nothing that was reported waits for one and none runs."""

    def look() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = daemon.get("/reef/steps", limit=1000)["steps"]
        waiting = daemon.get("/reef/reports", state="eligible")["reports"]
        busy = waiting or any(step["state"] not in ("done", "waiting") for step in found)
        return None if busy else found

    return wait_for(look, "the end of all steps", seconds=seconds)


def check_home(home: Path) -> None:
    """What a home must be like whenever nothing runs on it."""
    repository = home / "releases.git"
    fsck = subprocess.run(
        ["git", "fsck", "--full", "--strict"], cwd=repository, capture_output=True, text=True
    )
    assert fsck.returncode == 0, fsck.stderr
    told = (fsck.stdout + fsck.stderr).splitlines()
    assert all(line.startswith(("dangling", "notice: ")) for line in told), told
    with closing(sqlite3.connect(f"file:{home / 'reef.db'}?mode=ro", uri=True)) as db, db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        heads = dict(db.execute("SELECT scenario, head_release_id FROM scenarios"))
        unfinished = db.execute("SELECT * FROM intents WHERE done_at IS NULL").fetchall()
        rows = db.execute(
            "SELECT scenario, release_id FROM releases WHERE published ORDER BY recorded_at"
        ).fetchall()
        sequences = db.execute(
            "SELECT scenario, count(*), max(sequence), next_sequence FROM records "
            "JOIN scenarios USING (scenario) GROUP BY scenario"
        ).fetchall()
    assert unfinished == []
    assert all(count == newest == following - 1 for _, count, newest, following in sequences), sequences
    refs = git(repository, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/")
    assert dict(line.split() for line in refs.splitlines()) == heads
    for scenario, head in heads.items():
        history = git(repository, "rev-list", "--first-parent", "--reverse", head).split()
        assert history == [release for owner, release in rows if owner == scenario]


def git(repository: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True, check=True).stdout


def kill(daemon: Daemon) -> None:
    """`kill -9`, after which no process of it may be left."""
    daemon.kill()
    wait_for(lambda: not with_words(str(daemon.home)) or None, "the end of every child", seconds=10)


@dataclass
class Acknowledged:
    """What clients were told is safe."""

    receipts: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    releases: list[tuple[str, str]] = field(default_factory=list)


class Clients:
    """Eight clients that ask and report without pause, whatever becomes of the daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.told = Acknowledged()
        self.broken: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(8)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, number: int) -> None:
        dice = random.Random(number)
        scenario = f"ready-{number % 3}"
        turn = 0
        while not self._stop.is_set():
            turn += 1
            try:
                with self.daemon.client(x_reef_scenario=scenario) as client:
                    self._turn(client, scenario, dice, turn)
            except httpx.TransportError:
                time.sleep(0.25)  # it is down: leave it the processor to start on
            time.sleep(dice.random() * 0.05)

    def _turn(self, client: httpx.Client, scenario: str, dice: random.Random, turn: int) -> None:
        receipt = self._ask(client, dice.random() < 0.5, turn)
        if receipt is None or dice.random() < 0.6:
            return
        text = SENTENCE if dice.random() < 0.1 else f"Useless advice number {dice.randrange(10**6)}."
        answer = client.post("/reef/report", json={"score": 0, "feedback": text, "references": [receipt]})
        if self._fine(answer):
            self.told.reports.append(answer.json()["agent_record_id"])
        if dice.random() < 0.1:
            answer = client.post(f"/reef/scenarios/{scenario}/rollback", json={"release_id": "step:0"})
            if answer.status_code != 409 and self._fine(answer):
                self.told.releases.append((scenario, answer.json()["release_id"]))

    def _ask(self, client: httpx.Client, stream: bool, turn: int) -> str | None:
        body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": f"{PROMPT} {turn}"}]}
        answer = client.post("/v1/chat/completions", json=body)
        # The receipt of a stream is acknowledged by the event that carries it.
        if not self._fine(answer) or (stream and '"agent_record_id"' not in answer.text):
            return None
        receipt = answer.headers["x-reef-agent-record-id"]
        self.told.receipts.append(receipt)
        return receipt

    def _fine(self, answer: httpx.Response) -> bool:
        if answer.status_code != 200:
            self.broken.append(f"{answer.request.url} {answer.status_code}: {answer.text[:300]}")
        return answer.status_code == 200


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_ten_times_under_eight_clients(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, count=8)
    dice = random.Random(7)
    daemon = Daemon(tmp_path).start()
    try:
        with Clients(daemon) as clients:
            told = clients.told
            for number in range(1, 11):  # however slow the machine is, something was acknowledged in between
                wait_for(
                    lambda number=number: (
                        (len(told.receipts) > 6 * number and len(told.reports) >= number) or None
                    ),
                    "receipts and reports",
                    seconds=20,
                )
                time.sleep(dice.random())  # kills at any instant
                kill(daemon)
                daemon.start()
        steps = settle(daemon, seconds=120)
        assert clients.broken == []

        for receipt in told.receipts:
            assert daemon.get(f"/reef/records/{receipt}")["status"] == "complete"
        named = [report for step in steps for report in step["reports"]]
        assert len(named) == len(set(named)), "a report went into two steps"
        assert set(told.reports) <= set(named)
        assert [step for step in steps if step["outcome"] == "error"] == []
        listed = {
            (scenario, row["release_id"])
            for scenario in {scenario for scenario, _ in told.releases}
            for row in daemon.get(f"/reef/scenarios/{scenario}/releases")["releases"]
            if row["published"]
        }
        assert set(told.releases) <= listed
        assert daemon.stop() == 0
        check_home(daemon.home)
    finally:
        daemon.kill()


def hold(stub: StubProvider, word: str, *, after: int = 0) -> None:
    """Answer requests that hold `word` no more, once `after` of them were answered."""
    seen = 0

    def answer(asked: Asked) -> Answer:
        nonlocal seen
        if word in asked.body.decode():
            seen += 1
            if seen > after:
                stub.delay_s = HELD_S
        return right_with_the_sentence(asked)

    stub.answer = answer


def release_stub(stub: StubProvider) -> None:
    stub.answer, stub.delay_s = right_with_the_sentence, 0.0


def in_state(daemon: Daemon, state: str) -> None:
    daemon.step("ready-1", 1, until=(state,))


def finished(daemon: Daemon) -> dict[str, Any]:
    """Step 1, done, with its report in it and in no other."""
    step = daemon.step("ready-1", 1, until=("done",))
    listed = daemon.get("/reef/steps", scenario="ready-1")["steps"]
    assert [len(row["reports"]) for row in listed if row["step"] == 1] == [1]
    assert sum(len(row["reports"]) for row in listed) == 1
    return step


def test_killed_while_a_model_proposes(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    reef = tmp_path / "reef.toml"
    reef.write_text(reef.read_text().replace('["feedback", "demonstrations", "reflect"]', '["reflect"]'))
    stub.answer = lambda asked: '{"reason": "none", "mutations": []}' if "improve" in asked.system else "no"
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        stub.delay_s = HELD_S
        daemon.report(receipt, score=0, feedback=SENTENCE)
        in_state(daemon, "proposing")
        wait_for(lambda: len(stub.asked) == 2 or None, "the question to the model")
        kill(daemon)
        stub.delay_s = 0.0
        daemon.start()
        assert finished(daemon)["outcome"] == "skip"
        daemon.stop()
        check_home(daemon.home)


def test_killed_while_episodes_run(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        hold(stub, "part ", after=5)
        daemon.report(receipt, score=0, feedback=SENTENCE)
        in_state(daemon, "evaluating")
        before = wait_for(
            lambda: len(daemon.get("/reef/steps/ready-1/1")["episodes"]) >= 3 or None, "some episodes"
        )
        assert before
        ran = {key(one): one["started_at"] for one in daemon.get("/reef/steps/ready-1/1")["episodes"]}
        kill(daemon)
        release_stub(stub)
        daemon.start()
        step = finished(daemon)
        assert step["outcome"] == "select"
        keys = [key(one) for one in step["episodes"]]
        assert len(keys) == len(set(keys)) == step["metrics"]["cost"]["episodes"]
        kept = {key(one): one["started_at"] for one in step["episodes"]}
        assert ran.items() <= kept.items(), "what had finished did not run again"
        assert daemon.ask(PROMPT, scenario="ready-1")[0] == "reef is ready"
        daemon.stop()
        check_home(daemon.home)


def key(episode: dict[str, Any]) -> tuple[str, str, int]:
    return episode["task"], episode["side"], episode["repeat"]


def grown(daemon: Daemon) -> dict[str, Any]:
    """A home whose step 1 was published."""
    _, receipt = daemon.ask(PROMPT, scenario="ready-1")
    daemon.report(receipt, score=0, feedback=SENTENCE)
    return finished(daemon)


UNDO_ROWS = """
DELETE FROM releases WHERE scenario = 'ready-1' AND step = 1;
UPDATE scenarios SET head_release_id = (SELECT release_id FROM releases WHERE step = 0),
                     head_content_id = (SELECT content_id FROM releases WHERE step = 0);
UPDATE intents SET done_at = NULL WHERE step = 1;
"""
COMMITTING = "UPDATE steps SET state = 'committing', release_id = NULL, finished_at = NULL;"
DECIDING = """
UPDATE steps SET state = 'deciding', release_id = NULL, finished_at = NULL, outcome = NULL, decision = NULL;
DELETE FROM intents WHERE step = 1;
"""


@pytest.mark.parametrize(
    ("moments", "ref_moved"),
    [
        (COMMITTING, True),
        (UNDO_ROWS + COMMITTING, True),
        (UNDO_ROWS + COMMITTING, False),
    ],
    ids=["row written, step open", "ref moved, row missing", "commit made, ref not moved"],
)
def test_killed_while_a_release_is_made(
    tmp_path: Path, stub: StubProvider, moments: str, ref_moved: bool
) -> None:
    """The state that a crash leaves at each point is made by hand; the next start gives the same release."""
    configure(tmp_path, stub)
    with running(tmp_path) as daemon:
        release_id = grown(daemon)["release_id"]
        kill(daemon)
        turn_back(daemon.home, moments, ref_moved=ref_moved)
        daemon.start()
        step = finished(daemon)
        assert (step["outcome"], step["release_id"]) == ("select", release_id)
        rows = daemon.get("/reef/scenarios/ready-1/releases")["releases"]
        assert [row["step"] for row in rows] == [1, 0]
        assert rows[0]["release_id"] == release_id
        assert daemon.ask(PROMPT, scenario="ready-1")[0] == "reef is ready"
        daemon.stop()
        check_home(daemon.home)


def test_killed_while_it_decides(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    with running(tmp_path) as daemon:
        before = grown(daemon)
        kill(daemon)
        turn_back(daemon.home, UNDO_ROWS + DECIDING, ref_moved=False)
        asked = len(stub.asked)
        daemon.start()
        step = finished(daemon)
        assert len(stub.asked) == asked, "no episode runs again"
        assert step["outcome"] == "select"
        assert step["decision"] == before["decision"]
        daemon.stop()
        check_home(daemon.home)


def turn_back(home: Path, statements: str, *, ref_moved: bool) -> None:
    with closing(sqlite3.connect(home / "reef.db")) as db, db:
        db.executescript(statements)
    db.close()
    if not ref_moved:
        git(home / "releases.git", "update-ref", "refs/heads/ready-1", "refs/heads/ready-1~1")


def test_killed_between_a_promotion_and_its_step(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, publish="review")
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        daemon.report(receipt, score=0, feedback=SENTENCE)
        daemon.step("ready-1", 1, until=("waiting",))
        promoted = daemon.post("/reef/scenarios/ready-1/promote", {"release_id": "step:1"})["release_id"]
        kill(daemon)
        undo = "UPDATE steps SET state = 'waiting', waits_for = 'review', pending = 1, release_id = NULL"
        turn_back(daemon.home, undo, ref_moved=True)
        daemon.start()
        step = finished(daemon)
        assert (step["outcome"], step["release_id"], step["pending"]) == ("select", promoted, False)
        daemon.stop()
        check_home(daemon.home)


def test_a_head_that_moves_makes_the_step_start_over(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub)
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        hold(stub, "part ", after=5)
        daemon.report(receipt, score=0, feedback=SENTENCE)
        in_state(daemon, "evaluating")
        daemon.post("/reef/scenarios/ready-1/rollback", {"release_id": "step:0"})
        kill(daemon)
        release_stub(stub)
        daemon.start()
        step = finished(daemon)
        assert step["outcome"] == "select", step["decision"]
        assert (
            step["base_release_id"]
            != daemon.get("/reef/scenarios/ready-1/releases")["releases"][-1]["release_id"]
        )
        daemon.stop()
        check_home(daemon.home)
