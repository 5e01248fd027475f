"""The whole loop on a provider that is right only when a certain sentence stands in the system text."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import Daemon, running
from tests.stub_provider import Asked, StubProvider

SENTENCE = "Return the words after the colon, and nothing else."

CONFIG = """
[[upstream]]
name = "main"
base_url = "{url}"
model = "m"

[[scenario]]
match = "ready-*"
recipe = "ready"

[recipe.ready]
use = "harness_evolve"
adapter = "chat"
proposers = ["feedback", "demonstrations", "reflect"]
batch_size = 1
max_score = 0.0
tasks = "tasks.toml"
training_mode = "hybrid"
publish = "{publish}"

[recipe.ready.gate]
policy = "sequential"
alpha = 0.05
budget_pairs = 30
temperature = 0.0

[[recipe.ready.seed]]
id = "style"
name = "rules"
config = {{ text = "Answer briefly." }}
"""


def tasks(count: int) -> str:
    return "".join(
        f'[[task]]\nid = "ready-{n}"\nprompt = "Return exactly: part {n} is ready"\n'
        f'evaluator = "exact"\nexpected = "part {n} is ready"\nsplit = "gate"\n\n'
        for n in range(count)
    )


def right_with_the_sentence(asked: Asked) -> str:
    return asked.user.partition(": ")[2] if SENTENCE in asked.system else "I would rather not."


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as provider:
        provider.answer = right_with_the_sentence
        yield provider


def configure(folder: Path, stub: StubProvider, *, count: int = 12, publish: str = "auto") -> None:
    (folder / "reef.toml").write_text(CONFIG.format(url=stub.url, publish=publish))
    (folder / "tasks.toml").write_text(tasks(count))


@pytest.fixture
def daemon(tmp_path: Path, stub: StubProvider) -> Iterator[Daemon]:
    configure(tmp_path, stub)
    with running(tmp_path) as found:
        yield found


PROMPT = "Return exactly: reef is ready"


def test_feedback_becomes_a_release_and_a_rollback_takes_it_back(daemon: Daemon) -> None:
    said, receipt = daemon.ask(PROMPT, scenario="ready-1")
    assert said != "reef is ready"
    daemon.report(receipt, score=0, feedback=SENTENCE)

    step = daemon.step("ready-1", 1)
    assert (step["outcome"], step["proposer"]) == ("select", "feedback"), step["decision"]
    rows = daemon.get("/reef/scenarios/ready-1/releases")["releases"]
    assert [row["operation"] for row in rows] == ["training", "creation"]
    assert rows[0]["step"] == 1
    assert rows[0]["current"]
    assert rows[0]["metrics"]["wins"] >= 5
    with daemon.client() as client:
        diff = client.get("/reef/scenarios/ready-1/diff")
    assert f"+{SENTENCE}" in diff.text
    assert diff.headers["content-type"].startswith("text/x-diff")
    with daemon.client(x_reef_scenario="ready-1") as client:
        files = client.get("/reef/harness").json()["files"]
    assert any(SENTENCE in text for text in files.values())
    assert daemon.ask(PROMPT, scenario="ready-1")[0] == "reef is ready"

    daemon.post("/reef/scenarios/ready-1/rollback", {"release_id": "HEAD~1"})
    assert daemon.ask(PROMPT, scenario="ready-1")[0] != "reef is ready"
    newest = daemon.get("/reef/scenarios/ready-1/releases")["releases"][0]
    assert newest["operation"] == "rollback"
    assert newest["content_id"] == rows[1]["content_id"]


def test_the_history_is_a_git_repository(daemon: Daemon, tmp_path: Path) -> None:
    _, receipt = daemon.ask(PROMPT, scenario="ready-1")
    daemon.report(receipt, score=0, feedback=SENTENCE)
    daemon.step("ready-1", 1)
    rows = daemon.get("/reef/scenarios/ready-1/releases")["releases"]

    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(daemon.home / "releases.git"), str(clone))
    ids = git(clone, "log", "--format=%H").split()
    assert ids == [row["release_id"] for row in rows]
    message = git(clone, "log", "-1", "--format=%B")
    assert "Reef-Step: 1" in message
    assert "Reef-Evidence:" in message
    fsck = git(daemon.home / "releases.git", "fsck", "--full")
    assert all(line.startswith("dangling") for line in fsck.splitlines())


def test_a_conversation_keeps_its_release(daemon: Daemon) -> None:
    said, receipt = daemon.ask(PROMPT, scenario="ready-1")
    daemon.report(receipt, score=0, feedback=SENTENCE)
    daemon.step("ready-1", 1)
    opening = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": said}]
    with daemon.client(x_reef_scenario="ready-1") as client:
        answer = client.post(
            "/v1/chat/completions",
            json={"model": "m", "messages": [*opening, {"role": "user", "content": PROMPT}]},
        )
    first = daemon.get(f"/reef/records/{receipt}")["release_id"]
    assert answer.headers["x-reef-release-id"] == first
    assert answer.json()["choices"][0]["message"]["content"] != "reef is ready"


def test_review_waits_for_a_person(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, publish="review")
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        daemon.report(receipt, score=0, feedback=SENTENCE)
        step = daemon.step("ready-1", 1)
        assert (step["state"], step["waits_for"], step["pending"]) == ("waiting", "review", True)
        assert daemon.ask(PROMPT, scenario="ready-1")[0] != "reef is ready"
        daemon.post("/reef/scenarios/ready-1/promote", {"release_id": "step:1"})
        assert daemon.ask(PROMPT, scenario="ready-1")[0] == "reef is ready"
        rows = daemon.get("/reef/scenarios/ready-1/releases")["releases"]
        assert [(row["operation"], row["pending"]) for row in rows[:2]] == [
            ("promote", False),
            ("training", False),
        ]
        daemon.post("/reef/scenarios/ready-1/promote", {"release_id": "step:1"}, status=404)


def test_a_rejected_candidate_is_never_served(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, publish="review")
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask(PROMPT, scenario="ready-1")
        daemon.report(receipt, score=0, feedback=SENTENCE)
        daemon.step("ready-1", 1)
        body = {"release_id": "step:1", "reason": "too strict"}
        daemon.post("/reef/scenarios/ready-1/reject", body)
        step = daemon.step("ready-1", 1, until=("done",))
        assert step["decision"] == "rejected by a person: too strict"
        assert daemon.ask(PROMPT, scenario="ready-1")[0] != "reef is ready"


def test_a_useless_rule_is_rejected_and_the_batch_goes_on(daemon: Daemon) -> None:
    """The next proposer that has something to say gets the same batch in a new step."""
    _, receipt = daemon.ask(PROMPT, scenario="ready-1")
    feedback = {"text": "Be kind.", "correction": "reef is ready"}
    daemon.report(receipt, score=0, feedback=feedback)
    first = daemon.step("ready-1", 1)
    assert (first["proposer"], first["outcome"]) == ("feedback", "reject")
    second = daemon.step("ready-1", 2)
    assert second["continues"] == 1
    assert second["proposer"] == "demonstrations"
    listed = {row["step"]: row["reports"] for row in daemon.get("/reef/steps", scenario="ready-1")["steps"]}
    assert len(listed[1]) == 1
    assert listed[2] == []


def test_without_configuration_a_person_decides(tmp_path: Path, stub: StubProvider) -> None:
    stub.answer = lambda asked: "21 C" if "metric" in asked.system else "70 F"
    with running(tmp_path, "--upstream", stub.url, "--model", "m") as daemon:
        said, receipt = daemon.ask("How warm is it?")
        assert said == "70 F"
        answer = daemon.report(receipt, score=0, feedback="Use metric units.")
        assert "hint" not in answer
        assert "at least 5 gate tasks" in daemon.get("/reef/status")["hint"]
        step = daemon.step("default", 1)
        assert step["state"] == "waiting"
        assert len(stub.asked) == 1, "no model is called for it"
        with daemon.client() as client:
            diff = client.get("/reef/scenarios/default/diff", params={"to": "step:1"}).text
        assert "+Use metric units." in diff
        daemon.post("/reef/scenarios/default/promote", {"release_id": "step:1"})
        assert daemon.ask("How warm is it?")[0] == "21 C"


def test_a_step_can_be_cancelled(daemon: Daemon, stub: StubProvider) -> None:
    _, receipt = daemon.ask(PROMPT, scenario="ready-1")
    stub.delay_s = 0.5
    daemon.report(receipt, score=0, feedback=SENTENCE)
    daemon.step("ready-1", 1, until=("evaluating",))
    daemon.post("/reef/steps/ready-1/1/cancel", {}, status=202)
    step = daemon.step("ready-1", 1, until=("done",))
    assert (step["outcome"], step["decision"]) == ("skip", "cancelled by a person")
    stub.delay_s = 0.0
    assert daemon.ask(PROMPT, scenario="ready-1")[0] != "reef is ready"
    daemon.post("/reef/steps/ready-1/1/cancel", {}, status=409)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr if words[0] == "fsck" else done.stdout
