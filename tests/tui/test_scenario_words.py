"""What Home says of a scenario is about the release that is served, whatever was decided last."""

from datetime import UTC, datetime
from typing import Any

from reef_cli.tui.scenario_words import about

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
DECIDED = {"selection": {"outcome": "skip", "reason": "nothing to learn"}, "candidate_scores": {"a": 1.0}}


def told(operation: str, **head: Any) -> str:
    row = {"step": 3, "operation": operation, "recorded_at": "2026-01-01T11:55:00Z", "metrics": None}
    last = {"step": 8, "recorded_at": "2026-01-01T11:59:53Z", "metrics": DECIDED}
    counts = dict.fromkeys(("pending", "eligible", "consumed", "ineligible"), 0)
    state = {
        "surface": "none",
        "recipe": "r",
        "release_id": "27794c33d7aaaa",
        "head": row | {"rollback_target_release_id": None} | head,
        "last_committed_step": last,
        "counts": counts,
    }
    return about("words", state, NOW)


def test_a_rollback_says_what_is_served_again() -> None:
    lines = told("rollback", rollback_target_release_id="1caf6a20b4bbbb").splitlines()
    assert lines[1] == "serves 27794c33d7, rolled back 5 min ago to 1caf6a20b4"
    assert lines[2] == "last decision: step 8, 7 s ago: skip, nothing to learn"


def test_the_score_is_that_of_the_served_release() -> None:
    lines = told("training", metrics={"candidate_scores": {"a": 1.0, "b": 0.0}}).splitlines()
    assert lines[1] == "serves 27794c33d7, from step 3, 5 min ago, score 0.5"
    assert told("creation").splitlines()[1] == "serves 27794c33d7, as it was created 5 min ago"
