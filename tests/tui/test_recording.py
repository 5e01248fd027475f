"""A recording gives back what was kept, at the time it was there; its replay changes nothing."""

import asyncio
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reef.async_client import Event
from reef.errors import NotFound, Unsupported
from reef_cli.tui.recording import Recording
from reef_cli.tui.replay import ReplayClient

OBJECTS = st.dictionaries(st.text(max_size=5), st.integers(), max_size=3).map(json.dumps)
CHANGES = st.lists(st.tuples(st.integers(0, 50), st.text(max_size=20) | OBJECTS), min_size=1, max_size=5)


@given(st.dictionaries(st.text(min_size=1, max_size=8), CHANGES, max_size=4))
def test_what_was_kept_comes_back(kept: dict[str, list[tuple[int, str]]]) -> None:
    recording = Recording("2026-01-01T00:00:00.000Z", [(0.5, Event("b-1", "step", {"step": 1}))])
    for target, changes in kept.items():
        for at, body in sorted(changes, key=lambda change: change[0]):
            recording.keep(float(at), target, body)
    again = Recording.loads(recording.dumps())
    assert again.events == recording.events
    for target, changes in recording.answers.items():
        for at, _ in changes:
            assert _value(again.answer(target, at)) == _value(recording.answer(target, at))


def _value(body: str | None) -> object:
    assert body is not None
    try:
        value = json.loads(body)
    except ValueError:
        return body
    return value if isinstance(value, dict) else body


def test_the_shipped_recording_is_of_a_published_release() -> None:
    recording = Recording.shipped()
    names = {event.name for _, event in recording.events}
    assert {"hello", "record", "report", "verdict", "step", "episode", "release"} <= names

    async def look() -> None:
        async with ReplayClient(recording, speed=math.inf) as client:
            steps = (await client.steps("cities"))["steps"]
            assert steps[0]["outcome"] == "select"
            turns = (await client.records("cities", kind="turn", limit=5, order="desc"))["records"]
            assert len(turns) == 5
            unreported = await client.records("cities", kind="turn", reported=False, limit=100)
            reported = await client.records("cities", kind="turn", reported=True, limit=100)
            assert len(reported["records"]) == 4
            assert unreported["records"]
            with pytest.raises(Unsupported, match="replay"):
                await client.report(["x"], score=1)
            with pytest.raises(NotFound):
                await client.step("cities", 99)

    asyncio.run(look())


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("scenario", ["cities", None])
def test_its_records_are_paged_as_the_daemon_does_it(scenario: str | None, order: str) -> None:
    """Within a scenario as they ended, over all as they began; a page looks through `limit` for a text."""

    async def look() -> None:
        async with ReplayClient(Recording.shipped(), speed=math.inf) as client:
            whole = (await client.records(scenario, limit=1000, order=order))["records"]
            keys = [
                row["sequence"] if scenario else (row["created_at"], row["agent_record_id"]) for row in whole
            ]
            assert keys == sorted(keys, reverse=order == "desc")
            found: list[str] = []
            holding: list[str] = []
            after = None
            while True:
                page = await client.records(scenario, limit=7, order=order, after=after)
                held = await client.records(scenario, limit=7, order=order, after=after, text="LISBON")
                assert held["next_after"] == page["next_after"]
                if page["next_after"] == after:
                    break
                after = page["next_after"]
                found += [row["agent_record_id"] for row in page["records"]]
                holding += [row["agent_record_id"] for row in held["records"]]
            assert found == [row["agent_record_id"] for row in whole]
            said = [row["agent_record_id"] for row in whole if "lisbon" in json.dumps(row["payload"]).lower()]
            assert holding == said
            if scenario:
                third = whole[2]["sequence"]
                page = await client.records(scenario, limit=1, order=order, after_sequence=third)
                assert page["records"] == whole[3:4]

    asyncio.run(look())


def test_nothing_of_the_machine_it_was_taken_on_is_in_it() -> None:
    text = Recording.shipped().dumps()
    assert "/root" not in text
    assert "/home/" not in text
    assert "/tmp" not in text
