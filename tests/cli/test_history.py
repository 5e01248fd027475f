"""The history in lines: each row under its own step, with what was decided, and no id it did not make."""

from typing import Any

import pytest

from reef_cli.render import releases as render
from tests.cli.canned import C2, R0, R1, RECEIPT, row
from tests.cli.conftest import RunReef
from tests.fake_daemon import FakeDaemon

R2 = "dd" + "2" * 38
SELECTED = {"policy": "review", "outcome": "select"}
PROMOTED = [
    row(2, R2, R1, operation="promote", candidate_id=C2, current=True, message="Use metric units",
        metrics={"published": True, "selection": SELECTED | {"reason": "promoted by a person, from step 1"}}),
    row(1, R0, R0, candidate_id=C2, message="Use metric units",
        metrics={"published": False, "selection": SELECTED | {"reason": "promoted by a person, as step 2"}}),
]  # fmt: skip
SKIPPED = row(3, R1, R1, message="it was cancelled",
              metrics={"published": False, "selection": {"policy": "floor", "outcome": "skip"}})  # fmt: skip


@pytest.fixture
def promoted(online: RunReef, fake: FakeDaemon) -> RunReef:
    fake.routes["GET /reef/scenarios/ready/releases"] = lambda asked: {
        "releases": [dict(r) for r in PROMOTED]
    }

    def harness(asked: Any) -> Any:
        return {
            "release_id": {"step:1": C2, "step:2": R2, "HEAD": R2}[asked.query["release_id"]],
            "files": {},
        }

    fake.routes["GET /reef/harness"] = harness
    return online


@pytest.mark.parametrize(
    ("revision", "step", "release"), [("step:1", 1, C2), ("step:2", 2, R2), ("HEAD", 2, R2)]
)
def test_a_revision_shows_its_own_step(promoted: RunReef, revision: str, step: int, release: str) -> None:
    """The step that promoted a candidate names it as well."""
    first, second, *_ = promoted("show", revision).out.splitlines()
    assert first.startswith(f"release {release}")
    assert second.startswith(f"Step:    {step}, ")


def test_a_promoted_candidate_says_so(promoted: RunReef) -> None:
    assert "Why:     promoted by a person, from step 1\n" in promoted("show", "HEAD").out
    assert "Why:     promoted by a person, as step 2\n" in promoted("show", "step:1").out
    told = promoted("log", "--oneline", "--all").out.splitlines()
    assert told == [
        f"{R2[:10]} step:2 (HEAD) Use metric units",
        f"{C2[:10]} step:1 (promoted) Use metric units",
    ]


def test_a_step_that_made_nothing_shows_no_id() -> None:
    assert render.oneline(SKIPPED, 80) == "-          step:3 (skip) it was cancelled"
    assert render.entry(SKIPPED).splitlines()[0] == "no release (skip)"
    assert render.shown_id(SKIPPED) == ""


UNKNOWN = {"type": "invalid", "message": "reference `r9` is not a record of scenario `ready`", "hint": "look"}


class TestReportingWhatIsNotThere:
    @pytest.fixture(autouse=True)
    def refuses(self, fake: FakeDaemon) -> None:
        fake.routes["POST /reef/report"] = (400, {"error": UNKNOWN})

    def test_an_unknown_receipt_is_not_found(self, online: RunReef) -> None:
        ran = online("report", RECEIPT, "r9", "--score", "1")
        assert ran.code == 4
        assert ran.err.splitlines() == [f"error: {UNKNOWN['message']}", "hint: look"]

    def test_one_of_another_scenario_is_a_failure(self, online: RunReef, fake: FakeDaemon) -> None:
        fake.routes["GET /reef/records/r9"] = fake.routes[f"GET /reef/records/{RECEIPT}"]
        ran = online("report", RECEIPT, "r9", "--score", "1")
        assert (ran.code, ran.err.splitlines()[0]) == (1, f"error: {UNKNOWN['message']}")

    def test_so_is_what_names_no_receipt(self, online: RunReef, fake: FakeDaemon) -> None:
        fake.routes["POST /reef/report"] = (400, {"error": {**UNKNOWN, "message": "`score` is odd"}})
        assert online("report", "r9", "--score", "1").code == 1
