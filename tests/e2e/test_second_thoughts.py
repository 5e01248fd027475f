"""Several candidates wait, one was turned down, a scenario was put away: what people do next."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal, terminal
from tests.e2e.test_commands import SENTENCE, configure, curl, right_with_the_sentence, step_of
from tests.stub_provider import StubProvider


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider(right_with_the_sentence) as provider:
        yield provider


@pytest.fixture
def here(tmp_path: Path, stub: StubProvider) -> Iterator[Terminal]:
    configure(tmp_path, stub, publish="review")
    with terminal(tmp_path, OPENAI_API_KEY="sk") as found:
        found.reef("up")
        yield found


def teach(here: Terminal, text: str, step: int) -> None:
    curl(here)
    here.reef("report", "--score", "0", "--feedback", text, "--last")
    step_of(here, "ready-1", step, "waiting")


def test_what_a_candidate_for_an_earlier_release_would_change(here: Terminal) -> None:
    """What `diff`, `show` and `log -p` tell is what `promote` then does."""
    (here.folder / "tasks.toml").write_text("")  # nothing to measure: each waits
    teach(here, "Be kind.", 1)
    teach(here, SENTENCE, 2)
    assert "earlier release" not in here.reef("pending").out
    here.reef("promote", "step:1")
    assert "made for the earlier release" in here.reef("pending").out
    for words in (("diff",), ("diff", "HEAD", "step:2"), ("show", "step:2"), ("log", "-p")):
        told = here.reef(*words).out
        assert f"+{SENTENCE}" in told, words
        assert "-Be kind." not in told, words
    promised = here.reef("diff").out
    here.reef("promote")
    assert here.reef("diff").out == promised
    files = here.reef("checkout", "HEAD", "--to", "out", "--json").json["files"]
    texts = [(here.folder / "out" / name).read_text() for name in files if name.endswith(".md")]
    assert {"Be kind.\n", f"{SENTENCE}\n"} <= set(texts)


def test_a_rejected_candidate_is_not_checked_out(here: Terminal) -> None:
    teach(here, SENTENCE, 1)
    here.reef("reject", "step:1")
    told = here.refused("checkout", "step:1")
    assert "the candidate of step 1 was never served: reject" in told
    assert "reef is ready" not in curl(here)
    teach(here, f"Please: {SENTENCE}", 2)
    here.reef("checkout", "step:2")
    assert "reef is ready" in curl(here), "one that waits is promoted"
    here.reef("checkout", "HEAD~1")
    here.reef("checkout", "step:2")
    assert "reef is ready" in curl(here), "one that was promoted is served again"


def test_a_step_that_is_a_release(here: Terminal) -> None:
    teach(here, SENTENCE, 1)
    here.reef("promote")
    told = here.refused("step", "2", code=4)
    assert "step 2 of `ready-1` is no growth step but a release: promote" in told
    assert "creation" in here.refused("step", "0", code=4)
    assert "no growth step 9" in here.refused("step", "9", code=4)


def test_feedback_with_colours_in_it_becomes_a_rule(here: Terminal) -> None:
    teach(here, f"\x1b[31m{SENTENCE}\x1b[0m", 1)
    assert f"+{SENTENCE}" in here.reef("diff").out
    here.reef("promote")
    assert "reef is ready" in curl(here)


def test_a_report_that_says_nothing(here: Terminal) -> None:
    """The wire takes it, and says what becomes of it."""
    curl(here)
    receipt = here.reef("records", "--json").json["records"][0]["agent_record_id"]
    with here.http() as client:
        assert client.post("/reef/report", json={"references": [receipt]}).status_code == 200
        assert client.post("/reef/report", json={"feedback": [], "score": 1}).status_code == 400
        [report] = client.get("/reef/reports").json()["reports"]
    assert report["pairs"][0]["state"] == "ineligible"
    assert report["pairs"][0]["message"] == "it has neither a score nor feedback in words"


def test_an_archived_scenario(here: Terminal) -> None:
    curl(here, "ready-1")
    curl(here, "ready-2")
    assert "SCENARIO" in here.reef("records").out
    here.reef("scenarios", "archive", "ready-2")
    told = here.reef("report", "--last", "--score", "1", "--json").json
    assert told["scenario"] == "ready-1"
    assert "ready-2" not in here.reef("scenarios").out
    rows = here.reef("scenarios", "--all", "--json").json
    assert [(row["scenario"], row.get("archived", False)) for row in rows] == [
        ("ready-1", False),
        ("ready-2", True),
    ]
