"""Text for people: aligned, within its columns, nothing lost that matters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reef_cli.render.reports import REASONS, explain, feedback_text, pair_sentence, records
from reef_cli.render.status import budget_words, status
from reef_cli.render.text import clip, count, fields, number, short, size, table
from tests.cli.canned import RECORD, STATUS

CELL = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)


@given(st.lists(st.tuples(CELL, CELL), max_size=5), st.integers(60, 120))
def test_a_table_keeps_to_its_columns(rows: list[tuple[str, str]], columns: int) -> None:
    lines = table(("A", "B"), rows, columns=columns).split("\n")
    assert len(lines) == len(rows) + 1
    assert all(len(line) <= columns for line in lines)


@given(st.text(), st.integers(3, 50))
def test_clip_gives_one_short_line(text: str, limit: int) -> None:
    assert len(clip(text, limit)) <= limit
    assert "\n" not in clip(text, limit)


def test_small_words() -> None:
    assert (short("0123456789abcdef"), short(None)) == ("0123456789", "-")
    assert (count(1, "report"), count(2, "report")) == ("1 report", "2 reports")
    assert [number(v) for v in (None, 1.0, 0.5833, 0.0)] == ["-", "1", "0.583", "0"]
    assert [size(v) for v in (999, 1500, 12_300_000, 5_000_000_000)] == [
        "999 B",
        "1.5 kB",
        "12.3 MB",
        "5.0 GB",
    ]
    assert fields([("a", "1"), ("long", "2"), ("none", "")]) == "a     1\nlong  2"


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        (
            {"state": "ineligible", "reason": "opted_out"},
            "r: ineligible, the report keeps itself out of training",
        ),
        ({"state": "consumed", "step": 4, "reason": ""}, "r: consumed, in step 4"),
        ({"state": "ineligible", "reason": "x:too_long"}, "r: ineligible, too long"),
        ({"state": "eligible", "reason": "stale", "message": "said so"}, "r: eligible, said so"),
    ],
)
def test_a_pair_is_told_in_a_sentence(pair: dict[str, Any], sentence: str) -> None:
    assert pair_sentence({"receipt": "r", **pair}) == sentence


def test_every_reason_of_the_wire_has_words() -> None:
    assert len(REASONS) == 12


def test_feedback_on_one_line() -> None:
    assert feedback_text({"score": 0.0, "feedback": "bad"}) == "score 0 bad"
    assert feedback_text({"feedback": {"correction": "42"}}) == "42"
    assert feedback_text({"feedback": {"other": 1}}) == '{"other": 1}'


def test_a_status_with_trouble_in_it() -> None:
    trouble = {
        **STATUS,
        "scenarios": {},
        "storage": {"kind": "sqlite", "bytes": 1, "records": 1, "writable": False},
        "error": {"message": "disk full", "hint": "free some", "at": "2026-01-31T12:00:00.000Z"},
    }
    text = status(trouble)
    assert "NOT WRITABLE" in text
    assert "last error (2026-01-31 12:00Z): disk full\nhint: free some" in text
    assert "no scenario yet" in text


def test_status_says_what_a_budget_cannot_count() -> None:
    budget = {"unit": "usd", "used": 0.0, "limit": 1.0, "spent": False, "unpriced": 3}
    row = {**STATUS["scenarios"]["ready"], "budgets": [budget]}
    told = status({**STATUS, "warnings": ["no price"], "scenarios": {"r": row}})
    assert "warning: no price" in told
    assert budget_words(budget) == "$0.00 of $1.00 today (3 records unpriced)"
    budget["uncounted"] = 1
    assert budget_words(budget) == "$0.00 of $1.00 today (3 records unpriced, 1 answer not counted)"
    told = status({**STATUS, "scenarios": {"r": {**row, "budgets": [budget]}}})
    assert "warning: the budgets of `r` lack 1 answer of today, which told no usage; " in told


def test_records_name_the_upstream_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {**RECORD, "model": "m"}
    monkeypatch.setenv("COLUMNS", "80")
    narrow = records({"records": [row]})
    assert "UPSTREAM" not in narrow
    assert narrow.endswith("  m")
    monkeypatch.setenv("COLUMNS", "90")
    wide = records({"records": [row]})
    assert wide.splitlines()[0].endswith("STATUS    UPSTREAM  MODEL")
    assert wide.splitlines()[1].endswith("complete  local     m")


def test_explain_says_nothing_of_a_way_without_turns() -> None:
    plain = {
        **RECORD,
        "model": "m",
        "upstream": {"name": "main", "model": "m"},
        "metadata": {},
        "dropped": [],
    }
    told = explain(plain)
    assert "\nupstream  main\n" in told
    assert not [word for word in ("bridge", "other try", "dropped") if word in told]
    assert "upstream" not in explain({**plain, "upstream": {"name": None, "model": "m"}})


def test_status_says_what_a_state_hides() -> None:
    idle = {
        "name": "engine",
        "kind": "engine",
        "state": "ready",
        "model": "m",
        "url": "/m",
        "detail": "unloaded",
    }
    told = status({**STATUS, "config_changed": True, "serving": {"upstreams": [idle]}})
    assert "engine (engine, ready): m at /m (unloaded)" in told
    assert "the configuration has changed; it takes effect after `reef down`, then `reef up`" in told
    assert "the configuration has changed" not in status(STATUS)


def test_status_says_what_mends_an_upstream() -> None:
    down = {"kind": "http", "state": "down", "model": None, "url": "http://h", "detail": "refused"}
    upstreams = [{**down, "name": name, "hint": "is it started?"} for name in ("a", "b")]
    told = status({**STATUS, "serving": {"upstreams": [*upstreams, {**down, "name": "c"}]}})
    assert told.count("hint for") == 1
    assert "\nhint for `a`, `b`: is it started?\n" in told


def test_an_error_without_a_time() -> None:
    told = status({**STATUS, "error": {"message": "disk full", "hint": "free some", "at": None}})
    assert "\nlast error: disk full\nhint: free some" in told


def test_explain_invites_nobody_to_report_on_what_was_sent_again() -> None:
    told = explain(
        {
            **RECORD,
            "superseded_by": "r2",
            "usage": {"input_tokens": 1, "cached_tokens": 9, "output_tokens": 2},
        }
    )
    assert told.endswith("the client sent it again: r2 counts instead")
    assert "1 in, 9 from the cache, 2 out" in told
    assert "reef report" not in told


def test_explain_says_what_the_cache_was_a_part_of() -> None:
    usage = {"input_tokens": 10, "cached_tokens": 9, "output_tokens": 2}
    assert "10 in (9 of them cached), 2 out" in explain({**RECORD, "dialect": "chat", "usage": usage})
    assert "10 in, 9 from the cache, 2 out" in explain({**RECORD, "dialect": "messages", "usage": usage})


@pytest.mark.parametrize(("hard", "words"), [(True, "spent, refused"), (False, "spent, still served")])
def test_a_spent_budget_says_what_becomes_of_requests(
    monkeypatch: pytest.MonkeyPatch, hard: bool, words: str
) -> None:
    """In a narrow terminal too, whatever else the scenario does."""
    monkeypatch.setenv("COLUMNS", "40")
    budget = {"unit": "tokens", "used": 12, "limit": 5, "hard": hard, "spent": True}
    assert budget_words(budget) == f"{words}: 12 of 5 tokens today"
    row = {**STATUS["scenarios"]["ready"], "budgets": [{**budget, "spent": False}, budget]}
    told = status({**STATUS, "scenarios": {"ready": row}})
    assert f"warning: a budget of `ready` is {words}: 12 of 5 tokens today" in told
    assert "  spent, " in told.splitlines()[-1]
