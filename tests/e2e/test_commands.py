"""The loop as people type it: the documented configuration, `reef` and curl, and no configuration at all."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import wait_for
from tests.e2e.terminal import Terminal, terminal
from tests.stub_provider import Asked, StubProvider

SENTENCE = "Return the words after the colon, and nothing else."
PROMPT = "Return exactly: reef is ready"

CONFIG = """\
[reef]
port = 0                              # host, token, model_path, hosts, relay ...

[[upstream]]
name = "main"
base_url = "{url}"
model = "qwen3:8b"
api_key_env = "OPENAI_API_KEY"        # optional
api = ["chat"]                        # optional

[[scenario]]
match = "ready-*"                     # first match wins; the last entry may be "*"
recipe = "ready"

[recipe.ready]
use = "harness_evolve"                # a built-in name or "module:Class"
adapter = "chat"
proposers = ["feedback", "demonstrations", "reflect"]
batch_size = 1
max_score = 0.0                       # reports at or below it are lessons
tasks = "tasks.toml"                  # relative to this file
training_mode = "hybrid"
publish = "{publish}"

[recipe.ready.gate]
policy = "sequential"
alpha = 0.05
budget_pairs = 30
temperature = 0.0                     # of episodes; above 0 a task is repeated

[[recipe.ready.seed]]                 # applies when a scenario is created
id = "style"
name = "rules"
config = {{ text = "Answer briefly." }}
"""

TASK = """
[[task]]
id = "ready-{n}"
prompt = "Return exactly: part {n} is ready"
evaluator = "exact"                   # its arguments sit beside it
expected = "part {n} is ready"
split = "gate"                        # train | dev | gate
"""


def right_with_the_sentence(asked: Asked) -> str:
    return asked.user.partition(": ")[2] if SENTENCE in asked.system else "I would rather not."


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider(right_with_the_sentence) as provider:
        yield provider


def configure(folder: Path, stub: StubProvider, *, publish: str = "auto") -> None:
    (folder / "reef.toml").write_text(CONFIG.format(url=stub.url, publish=publish))
    (folder / "tasks.toml").write_text("".join(TASK.format(n=n) for n in range(1, 13)))


@pytest.fixture
def here(tmp_path: Path, stub: StubProvider) -> Iterator[Terminal]:
    configure(tmp_path, stub)
    with terminal(tmp_path, OPENAI_API_KEY="sk-the-providers-own") as found:
        found.reef("up")
        yield found


def curl(here: Terminal, scenario: str = "ready-1") -> str:
    """The request of the documents, in a conversation of its own; prints the answer's text."""
    body = json.dumps({"model": "qwen3:8b", "messages": [{"role": "user", "content": PROMPT}]})
    done = subprocess.run(
        ["sh", "-c",
         'eval "$("$1" env)" && curl -fsS "$OPENAI_BASE_URL/chat/completions"'
         ' -H "Authorization: Bearer $OPENAI_API_KEY" -H "content-type: application/json"'
         ' -H "x-reef-scenario: $2" -d "$3"', "sh", here.reef_path, scenario, body],
        cwd=here.folder, env=here.environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def step_of(here: Terminal, scenario: str, number: int, *states: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        rows = here.reef("steps", "-s", scenario, "--json").json
        return next((row for row in rows if row["step"] == number and row["state"] in states), None)

    return wait_for(look, f"step {number}")


def test_the_loop(here: Terminal, stub: StubProvider) -> None:
    assert "reef is ready" not in curl(here)
    assert stub.asked[0].headers["authorization"] == "Bearer sk-the-providers-own"
    told = here.reef("report", "--score", "0", "--feedback", SENTENCE, "--last")
    assert "eligible" in told.out
    assert told.err == "", "twelve gate tasks are enough: no hint"
    step = step_of(here, "ready-1", 1, "done")
    assert (step["outcome"], step["proposer"]) == ("select", "feedback")

    log = here.reef("log").out
    assert "Step:    1, training by ready" in log
    assert "wins" in log
    assert "step:1" in here.reef("log", "--oneline", "-n", "1").out
    assert f"+{SENTENCE}" in here.reef("diff").out
    assert f"+{SENTENCE}" in here.reef("log", "-p").out
    assert f"+{SENTENCE}" in here.reef("show", "step:1").out
    assert "Answer briefly." in here.reef("show", "HEAD~1").out
    with here.http(x_reef_scenario="ready-1") as client:
        files = client.get("/reef/harness").json()["files"]
    assert any(SENTENCE in text for text in files.values())
    assert "reef is ready" in curl(here)

    assert "now serves" in here.reef("checkout", "HEAD~1").out
    assert "reef is ready" not in curl(here)
    assert here.reef("log", "--json").json[0]["operation"] == "rollback"
    here.reef("checkout", "-")
    assert "reef is ready" in curl(here)


def test_a_release_as_files(here: Terminal) -> None:
    curl(here)
    here.reef("report", "--score", "0", "--feedback", SENTENCE, "--last")
    step_of(here, "ready-1", 1, "done")
    assert "3 files" in here.reef("checkout", "HEAD", "--to", "new").out
    texts = [path.read_text() for path in sorted((here.folder / "new").rglob("*.md"))]
    assert sorted(texts) == sorted(["Answer briefly.\n", f"{SENTENCE}\n"])
    here.reef("checkout", "HEAD~1", "--to", "old")
    assert [path.read_text() for path in (here.folder / "old").rglob("*.md")] == ["Answer briefly.\n"]
    assert here.reef("log", "--json").json[0]["operation"] == "training", "nothing was served anew"
    assert "not empty" in here.refused("checkout", "HEAD", "--to", "new", code=2)


def test_the_story_of_a_receipt(here: Terminal) -> None:
    curl(here)
    [record] = here.reef("records", "-s", "ready-1", "--json").json["records"]
    receipt = record["agent_record_id"]
    assert "no report cites it" in here.reef("explain", receipt).out
    here.reef("report", receipt, "--score", "0", "--feedback", SENTENCE)
    step_of(here, "ready-1", 1, "done")
    told = here.reef("explain", receipt).out
    first = here.reef("log", "--json").json[-1]["release_id"]
    assert f"release   {first[:10]}" in told
    assert f"score 0 {SENTENCE}" in told
    assert "ready: consumed, it went into step 1" in told
    assert "step 1: select." in told
    assert receipt in here.reef("step", "1").out
    assert here.reef("explain", receipt, "--json").json["steps"][0]["outcome"] == "select"


def test_steps_name_each_report_once(here: Terminal) -> None:
    told = []
    for text in ("Be kind.", "Be brief.", SENTENCE):
        curl(here)
        reported = here.reef("report", "--score", "0", "--feedback", text, "--last", "--json").json
        told.append(reported["agent_record_id"])

    def all_taken() -> list[str] | None:
        rows = here.reef("steps", "--json").json
        found = [report for row in rows for report in row["reports"]]
        return sorted(found) if len(found) >= 3 and all(row["state"] == "done" for row in rows) else None

    assert wait_for(all_taken, "three steps") == sorted(told)


def test_review(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, publish="review")
    with terminal(tmp_path, OPENAI_API_KEY="sk") as here:
        here.reef("up")
        assert here.reef("pending").out == "nothing waits\n"
        curl(here)
        here.reef("report", "--score", "0", "--feedback", SENTENCE, "--last")
        step_of(here, "ready-1", 1, "waiting")
        assert "reef promote step:1" in here.reef("pending").out
        here.reef("reject", "--reason", "not like this")
        assert here.reef("pending").out == "nothing waits\n"
        assert "rejected by a person: not like this" in here.reef("step", "1").out
        assert "reef is ready" not in curl(here)
        assert "no candidate waits" in here.refused("promote", code=4)
        assert "step:1" not in here.reef("log", "--oneline").out
        assert "step:1" in here.reef("log", "--oneline", "--all").out

        here.reef("report", "--score", "0", "--feedback", f"Please: {SENTENCE}", "--last")
        step_of(here, "ready-1", 2, "waiting")
        here.reef("promote")
        assert "reef is ready" in curl(here)


def test_without_configuration(tmp_path: Path, stub: StubProvider) -> None:
    stub.answer = lambda asked: "21 C" if "Use metric units." in asked.system else "70 F"
    with terminal(tmp_path) as here:
        up = here.reef("up", "--port", "0", "--upstream", stub.url, "--model", "qwen3:8b")
        assert "at least 5 gate tasks" in up.err
        assert f"as configured: `main` ({stub.url})" in up.out, "it says which runtime and why"
        assert here.ask("How warm is it?")[0] == "70 F"
        told = here.reef("report", "--score", "0", "--feedback", "Use metric units.", "--last")
        assert told.err == ""
        step_of(here, "default", 1, "waiting")
        pending = here.reef("pending")
        assert "step 1 waits for your review" in pending.out
        assert "at least 5 gate tasks" in pending.err
        assert "+Use metric units." in here.reef("diff").out
        assert len(stub.asked) == 1, "no model is called for it"
        here.reef("promote")
        assert here.ask("How warm is it?")[0] == "21 C"
        assert here.reef("step", "1").out.count("promoted by a person") == 1
        log = here.reef("log").out
        assert "Step:    2, promote" in log
        assert "Why:     promoted by a person, from step 1" in log
        assert "waits for a person" not in log
        assert "Why:     promoted by a person, as step 2" in here.reef("show", "step:1").out
        assert "is not a record" in here.refused("report", "nothing", "--score", "1", code=4)


def test_what_init_writes_runs(tmp_path: Path, stub: StubProvider) -> None:
    """Its `reef.toml` has its home beside it."""
    with terminal(tmp_path) as here:
        here.home = tmp_path / ".reef"
        del here.environ["REEF_HOME"]
        assert here.reef("init").out == "wrote reef.toml\nwrote tasks.toml\n"
        here.refused("init", code=2)
        up = here.reef("up", "--port", "0", "--upstream", stub.url, "--model", "M")
        assert up.err.replace("starting ...\n", "") == ""
        assert str(here.home) in up.out
        here.ask(PROMPT)
        here.reef("report", "--score", "0", "--feedback", SENTENCE, "--last")
        step = step_of(here, "default", 1, "done")
        assert step["outcome"] in ("reject", "inconclusive"), "four of its six tasks stay wrong"
        assert here.reef("status", "--json").json["scenarios"]["default"]["recipe"] == "main"
        here.reef("down")
        assert here.reef("status", "--json", code=3).json == {"running": False, "home": str(here.home)}
        here.reef("init", "--recipe", "record", "--force")
        here.reef("up", "--port", "0", "--upstream", stub.url)
