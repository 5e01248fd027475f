"""What a body shares with one before it is taken over from there: what is stored is the same as without."""

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, func, select

from daemon.records.bodies import HASH_BYTES, load_body
from daemon.records.cutting import CUT_FROM_BYTES
from daemon.records.draft import Draft
from daemon.records.keeping import MOST_KEPT, MOST_KEPT_BYTES, Bodies
from daemon.records.query import find
from daemon.scrub import mask
from daemon.store.schema import pieces
from reef.errors import NotFound
from reef.feedback import Usage
from tests.daemon.records.desk import Desk

LONG = "x" * CUT_FROM_BYTES
SECRET = "sk-proj-abcDEF0123456789abcdef"
texts = st.sampled_from(["hi", "hé", "", f"key {SECRET}", f"{SECRET} {SECRET}", LONG])
said = st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": texts}), max_size=5)


@st.composite
def requests(draw: st.DrawFn) -> list[bytes]:
    """Some requests of one conversation or another: their messages go on, are edited or left out."""
    found, messages = [], draw(said)
    for _ in range(draw(st.integers(2, 5))):
        at = draw(st.integers(0, len(messages)))
        messages = messages[:at] + draw(said) + messages[draw(st.integers(at, len(messages))) :]
        body: dict[str, Any] = {"model": LONG, "messages": messages, "tools": draw(said), "n": draw(texts)}
        found.append(json.dumps(body, indent=draw(st.sampled_from([None, 1]))).encode())
    return found


def insert(desk: Desk, drafts: Sequence[Draft], *, fail: bool = False) -> None:
    """Store drafts in one group, as the writer does; or fail after it."""

    def work(connection: Connection, groups: Sequence[Sequence[Draft]]) -> Sequence[Sequence[Usage]]:
        done = [desk.book._insert(connection, group) for group in groups]
        if fail:
            raise ZeroDivisionError
        return done

    desk.store.writer.submit_together(work, drafts).result(30)


def stored(desk: Desk, receipt: str, column: str = "request_pieces") -> bytes:
    return desk.store.read_now(lambda c: load_body(c, find(c, receipt)[column]))


def scrubbed(desk: Desk, receipt: str) -> int:
    row = desk.store.read_now(lambda c: find(c, receipt))
    return int(json.loads(row["metadata"])["scrubbed"])


def request(*messages: str) -> bytes:
    body = {"messages": [{"role": "user", "content": f"{text} {LONG}"} for text in messages], "tools": ["t"]}
    return json.dumps(body).encode()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests(), st.integers(1, 3))
def test_what_is_stored_is_what_was_sent(desk: Desk, sent: list[bytes], together: int) -> None:
    drafts = [desk.draft(request=body, forwarded=other) for body, other in zip(sent, sent[::-1], strict=True)]
    for at in range(0, len(drafts), together):
        insert(desk, drafts[at : at + together])
    for draft in drafts:
        assert draft.forwarded is not None
        (first, hits), (second, more) = mask(draft.request), mask(draft.forwarded)
        assert stored(desk, draft.id) == first
        assert stored(desk, draft.id, "forwarded_pieces") == second
        assert scrubbed(desk, draft.id) == hits + more


@given(requests())
def test_the_pieces_are_the_same_with_and_without_memory(sent: list[bytes]) -> None:
    remembering = Bodies(scrub=True)
    commit = remembering.commit()
    for body in sent:
        forgetful = Bodies(scrub=True)
        kept = remembering.request(body, "r", commit)
        alone = forgetful.request(body, "r", forgetful.commit())
        assert (kept.cut, kept.keys, kept.masked) == (alone.cut, alone.keys, alone.masked)
        assert kept.keys_of("messages") == alone.keys_of("messages")


def test_pieces_that_were_not_committed_after_all_are_stored_again(desk: Desk) -> None:
    first, second = desk.draft(request=request("one")), desk.draft(request=request("one", "two"))
    with pytest.raises(ZeroDivisionError):
        insert(desk, [first], fail=True)
    insert(desk, [second])
    assert stored(desk, second.id) == second.request
    again = desk.draft(request=request("one", "two", "three"))
    insert(desk, [again])
    assert stored(desk, again.id) == again.request


def test_a_group_that_fails_is_stored_one_by_one(desk: Desk) -> None:
    drafts = [desk.draft(request=request(*"abcd"[:count])) for count in (1, 2, 3, 4)]
    drafts[1].scenario = "unknown"

    blocked = threading.Event()
    desk.store.writer.submit(lambda _: blocked.wait(30))
    waiting = [desk.store.writer.submit_together(desk.book._insert, draft) for draft in drafts]
    blocked.set()
    failures = [future.exception(30) for future in waiting]
    assert [type(failure) for failure in failures] == [type(None), NotFound, type(None), type(None)]
    for draft in (drafts[0], *drafts[2:]):
        assert stored(desk, draft.id) == draft.request


def test_what_is_known_is_not_stored_again(desk: Desk) -> None:
    """Taken away behind its back, a piece does not come back: it was not looked at."""
    first, second = desk.draft(request=request("one")), desk.draft(request=request("one", "two"))
    insert(desk, [first])
    desk.store.writer.submit(lambda connection: connection.execute(delete(pieces))).result(10)
    insert(desk, [second])
    count = desk.store.read_now(lambda c: c.execute(select(func.count()).select_from(pieces)).scalar_one())
    assert count == 2  # the second message, and the answer


def test_a_retry_is_the_same_messages(desk: Desk) -> None:
    hashes = []
    for body in (request("one"), request("one"), request("one", "two"), request("other")):
        draft = desk.draft(request=body)
        insert(desk, [draft])
        hashes.append(desk.store.read_now(lambda c, d=draft: find(c, d.id)["message_hash"]))
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_little_is_remembered() -> None:
    bodies = Bodies(scrub=False)
    commit = bodies.commit()
    turns = [str(number) for number in range(20)]
    for count in range(1, 20):
        bodies.request(request(*turns[:count]), "r", commit)
    assert bodies.size < 2 * len(request(*turns))  # one conversation is remembered once
    for number in range(2 * MOST_KEPT):
        bodies.request(request(f"other {number}"), "r", commit)
    assert bodies.size < 2 * MOST_KEPT * len(request("other"))
    for number in range(4):
        bodies.request(request(f"{number} {'x' * (MOST_KEPT_BYTES // 3)}"), "r", commit)
        assert bodies.size <= MOST_KEPT_BYTES
    before = bodies.size
    bodies.request(request("x" * MOST_KEPT_BYTES), "r", commit)
    assert bodies.size == before
    assert len(bodies.request(b"{}", "r", commit).keys) == HASH_BYTES


def test_a_retry_is_known_however_it_is_written(desk: Desk) -> None:
    """With more or less beside its messages, and with other spaces between them."""
    messages = [{"role": "user", "content": "x" * 3000}, {"role": "user", "content": "one"}]
    bodies = [
        json.dumps({"model": "m", "system": "s" * more, "messages": messages}, separators=separators).encode()
        for more in (0, 2000)
        for separators in ((", ", ": "), (",", ":"))
    ]
    assert min(map(len, bodies)) < CUT_FROM_BYTES < max(map(len, bodies))
    drafts = [desk.draft(request=body) for body in bodies]
    for draft in drafts:
        insert(desk, [draft])
    names = {desk.store.read_now(lambda c, d=d: find(c, d.id)["message_hash"]) for d in drafts}
    assert len(names) == 1


def test_a_request_with_a_credential_in_it_is_not_remembered() -> None:
    bodies = Bodies(scrub=True)
    kept = bodies.request(request("one", "ghp_" + "a1" * 20), "r", bodies.commit())
    assert sum(kept.masked.values()) == 1
    assert bodies.size == 0
    bodies.request(request("one", "two"), "r", bodies.commit())
    assert bodies.size > 0
