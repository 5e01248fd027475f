"""What a day's records add up to: every token once, in each dialect, of new records and of old ones."""

import json
from typing import Any

import pytest
from sqlalchemy import update

from daemon.records.draft import Draft
from daemon.records.entry import TOKENS_MOST
from daemon.records.used import Used, used_since
from daemon.store.schema import records
from reef.runtime import DIALECTS, Dialect
from tests.daemon.records.desk import Desk

TRAFFIC: dict[Dialect, dict[str, Any]] = {
    "chat": {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 70_010,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 50_000},
        },
    },
    "messages": {
        "content": [{"type": "text", "text": "hi"}],
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 50_000,
            "cache_creation_input_tokens": 20_000,
            "output_tokens": 5,
        },
    },
    "responses": {
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
        "usage": {
            "input_tokens": 70_010,
            "output_tokens": 5,
            "input_tokens_details": {"cached_tokens": 50_000},
        },
    },
}
"""The same traffic, as each dialect reports it."""


def recorded(desk: Desk, answer: Any, dialect: Dialect = "chat", **more: Any) -> Draft:
    said = {"dialect": dialect, "response": json.dumps(answer).encode(), "upstream_name": "main"}
    draft = desk.draft(**said | more)
    desk.run(desk.book.append(draft))
    return draft


def used(desk: Desk) -> Used:
    return desk.store.read_now(lambda connection: used_since(connection, "city", "2026-01-01"))


def forget_totals(desk: Desk) -> None:
    """Make the records such as an earlier Reef stored."""
    change = update(records).values(billed_tokens=None)
    desk.run(desk.store.write(lambda connection: connection.execute(change)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_traffic_counts_alike_in_every_dialect(desk: Desk, dialect: Dialect) -> None:
    draft = recorded(desk, TRAFFIC[dialect], dialect)
    assert used(desk) == Used(0.0, 70_015, unpriced=1)
    here = Used()
    here.add(draft)
    assert here == used(desk)
    directions = {key[2]: count for key, count in desk.book.tally.tokens.items()}
    assert directions == {"input": 20_010, "cached": 50_000, "output": 5}
    forget_totals(desk)
    written = 20_000 if dialect == "messages" else 0  # which nobody kept then
    assert used(desk).tokens == 70_015 - written


def test_what_an_answer_tells_is_counted_and_one_that_tells_nothing_is_told_of(desk: Desk) -> None:
    for answer, more in [
        ({"choices": [], "usage": {"completion_tokens": 7}}, {}),
        ({"choices": []}, {}),
        ({"choices": []}, {"status": "aborted"}),
        ({"error": {"message": "no"}}, {"status": "failed", "http_status": 500}),
        (None, {"status": "aborted", "http_status": None}),
        ({"choices": []}, {"upstream_name": None}),
        ({"choices": []}, {"kind": "episode"}),
    ]:
        recorded(desk, answer, **more)
    assert used(desk) == Used(0.0, 7, unpriced=1, uncounted=2)
    forget_totals(desk)
    assert used(desk) == Used(0.0, 7, unpriced=1, uncounted=2)


def test_counting_tokens_uses_none(desk: Desk) -> None:
    recorded(desk, {"input_tokens": 4000}, "messages", kind="count_tokens")
    assert not desk.book.tally.tokens
    assert used(desk) == Used()


def test_whatever_an_upstream_claims_a_day_can_be_added_up(desk: Desk) -> None:
    usage = {"prompt_tokens": 2**63 - 1, "completion_tokens": 2**63 - 1}
    for _ in range(2):
        recorded(desk, {"choices": [], "usage": usage})
    assert used(desk).tokens == 2 * TOKENS_MOST
