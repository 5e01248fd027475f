"""What a report may say (protocol section 3), and what its references may name."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.records.intake import parse
from reef.errors import Conflict, Invalid
from reef.ids import new_receipt
from tests.daemon.records.desk import Desk

RUN, SESSION = "run:r1", "session:s1"


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (["score"], "JSON object"),
        ({"score": True}, "`score`"),
        ({"score": "1"}, "`score`"),
        ({"score": math.nan}, "`score`"),
        ({"score": math.inf}, "`score`"),
        ({"score": 10**400}, "`score`"),
        ({"feedback": 3}, "`feedback`"),
        ({"feedback": {"correction": 3}}, "`feedback.correction`"),
        ({"references": "a"}, "`references`"),
        ({"references": [1]}, "`references`"),
        ({"references": ["a", "b", "a"]}, "`a` is there twice"),
        ({"metadata": []}, "`metadata`"),
        ({"preferred": 1}, "`preferred`"),
        ({"over": 1}, "`over`"),
        ({"agent_record_id": 1}, "`agent_record_id`"),
        ({"agent_record_id": "a b"}, "agent_record_id"),
        ({"agent_record_id": ""}, "agent_record_id"),
    ],
)
def test_a_refusal_names_the_field(body: Any, names: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse(body)
    assert names in caught.value.message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KEYS = ("score", "feedback", "references", "preferred", "over", "metadata", "agent_record_id", "else")


@given(st.dictionaries(st.sampled_from(KEYS), json_values) | json_values)
def test_any_json_is_read_or_refused(body: Any) -> None:
    try:
        report = parse(body)
    except Invalid:
        return
    assert report.score is None or math.isfinite(report.score)
    assert set(report.ignored) == {key for key in body if key not in KEYS[:-1]}


def test_the_order_of_keys_does_not_matter_to_the_digest() -> None:
    one = parse({"score": 1, "metadata": {"a": 1, "b": 2}, "references": ["x"]})
    two = parse({"references": ["x"], "metadata": {"b": 2, "a": 1}, "score": 1.0})
    assert one.digest() == two.digest()
    assert one.digest() != parse({"score": 1, "references": ["y"]}).digest()


def test_a_score_keeps_its_words(desk: Desk) -> None:
    receipt = desk.record()
    report_id = desk.report(receipt, score=0.25, feedback={"text": "no", "n": 1}, metadata={"by": "me"})
    (listed,) = desk.listed(report_id=report_id)
    assert listed["score"] == 0.25
    assert listed["feedback"] == {"text": "no", "n": 1}
    assert listed["metadata"] == {"by": "me"}
    assert listed["references"] == [receipt]


class TestReferences:
    """Each refusal names the first bad one, and stores nothing."""

    def refused(self, desk: Desk, *references: str, **more: Any) -> str:
        with pytest.raises(Invalid) as caught:
            desk.report(*references, **more)
        assert desk.listed() == []
        return caught.value.message

    def test_unknown(self, desk: Desk) -> None:
        good = desk.record()
        told = self.refused(desk, good, "nothing-1", "nothing-2")
        assert "`nothing-1` is not a record of scenario `city`" in told

    def test_foreign(self, desk: Desk) -> None:
        theirs = desk.record(scenario="other")
        assert f"`{theirs}` belongs to scenario `other`" in self.refused(desk, desk.record(), theirs)

    def test_foreign_while_it_runs(self, desk: Desk) -> None:
        theirs = new_receipt()
        desk.book.opened(theirs, "other")
        assert "belongs to scenario `other`" in self.refused(desk, theirs)

    def test_a_report(self, desk: Desk) -> None:
        report_id = desk.lesson(desk.record())
        with pytest.raises(Invalid, match=f"`{report_id}` is a report, not an inference"):
            desk.report(report_id)

    def test_the_same_record_by_two_names(self, desk: Desk) -> None:
        receipt = desk.record(body={"id": "chatcmpl-1"})
        assert "`chatcmpl-1` is there twice" in self.refused(desk, receipt, "chatcmpl-1")

    def test_a_run_that_holds_a_named_one(self, desk: Desk) -> None:
        receipt = desk.record(run="r1")
        assert f"`{RUN}` is there twice" in self.refused(desk, receipt, RUN)

    def test_a_name_of_several(self, desk: Desk) -> None:
        for _ in range(3):
            desk.record(body={"id": "same"})
        assert "`same` names 3 records" in self.refused(desk, "same")

    @pytest.mark.parametrize("name", ["run:none", "session:none", "run:"])
    def test_an_empty_run(self, desk: Desk, name: str) -> None:
        desk.record(run="r1", session="s1")
        assert f"`{name}`" in self.refused(desk, name)

    @pytest.mark.parametrize("key", ["preferred", "over"])
    def test_a_pairwise_one(self, desk: Desk, key: str) -> None:
        assert "`nothing`" in self.refused(desk, desk.record(), **{key: "nothing"})


def test_a_record_is_found_by_every_name_it_has(desk: Desk) -> None:
    call = {"id": "call_7", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    receipt = desk.record(
        body={"id": "chatcmpl-9"}, upstream_request_id="req-5", message={"tool_calls": [call]}
    )
    for name in (receipt, "chatcmpl-9", "req-5", "call_7"):
        assert list(desk.pairs(desk.report(name))) == [receipt]


@pytest.mark.parametrize("name", [RUN, SESSION])
def test_a_run_means_its_finished_turns(desk: Desk, name: str) -> None:
    place = {"run": "r1", "session": "s1"}
    turns = [desk.record(f"Question {n}?", **place) for n in range(2)]
    desk.record(**place, kind="title")
    desk.record(**place, status="aborted")
    desk.record(run="r2", session="s2")
    desk.record(**place, scenario="other")
    assert list(desk.pairs(desk.report(name))) == turns


def test_without_references_it_is_stored_and_never_trains(desk: Desk) -> None:
    report_id = desk.report(score=1)
    assert desk.pairs(report_id) == {"": ("ineligible", "no_reference")}
    (listed,) = desk.listed()
    assert listed["pairs"][0]["receipt"] is None


class TestChosenIds:
    def test_the_same_call_may_be_repeated(self, desk: Desk) -> None:
        receipt = desk.record()
        first = desk.lesson(receipt, agent_record_id="mine-1")
        assert desk.lesson(receipt, agent_record_id="mine-1") == first == "mine-1"
        assert len(desk.listed()) == 1

    def test_other_content_is_a_conflict(self, desk: Desk) -> None:
        receipt = desk.record()
        desk.lesson(receipt, agent_record_id="mine-1")
        with pytest.raises(Conflict, match="taken by another report"):
            desk.report(receipt, score=1, agent_record_id="mine-1")

    def test_another_scenario_is_a_conflict(self, desk: Desk) -> None:
        desk.report(score=0, agent_record_id="mine-1")
        with pytest.raises(Conflict):
            desk.report(score=0, agent_record_id="mine-1", scenario="other")

    def test_a_receipt_is_a_conflict(self, desk: Desk) -> None:
        receipt = desk.record()
        with pytest.raises(Conflict, match="taken by another inference"):
            desk.report(score=0, agent_record_id=receipt)

    def test_a_repeat_gets_no_second_verdict(self, desk: Desk) -> None:
        receipt = desk.record()
        desk.lesson(receipt, agent_record_id="mine-1")
        before = desk.listed()
        desk.lesson(receipt, agent_record_id="mine-1")
        assert desk.listed() == before


def test_sequences_count_records_and_reports_of_a_scenario(desk: Desk) -> None:
    receipt = desk.record()
    desk.record(scenario="other")
    desk.lesson(receipt)
    with pytest.raises(Invalid):
        desk.report("nothing")
    desk.lesson(desk.record())
    assert [report["sequence"] for report in desk.listed()] == [4, 2]
