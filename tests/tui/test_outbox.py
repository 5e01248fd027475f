"""Reports on their way out: held, said again, taken back, sent once."""

import asyncio
import shlex
from typing import Any, cast

import pytest

from reef.async_client import AsyncClient
from reef.errors import DaemonUnreachable, Invalid, ReefError, Unauthorized
from reef_cli.commands.report import read_feedback
from reef_cli.tui.outbox import HOLD_S, Held, Outbox


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """A client that takes reports, or fails with `error`."""

    def __init__(self, error: ReefError | None = None) -> None:
        self.error = error
        self.taken: list[dict[str, Any]] = []

    async def report(self, **fields: Any) -> dict[str, Any]:
        if self.error:
            raise self.error
        self.taken.append(fields)
        return {}


def send(outbox: Outbox, desk: Desk, held: Held) -> bool:
    return asyncio.run(outbox.send(lambda: cast(AsyncClient, desk), held)) is not None


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(clock: Clock) -> Outbox:
    return Outbox(clock)


def test_a_report_is_due_after_the_hold(outbox: Outbox, clock: Clock) -> None:
    outbox.hold([("a", "s")], score=1)
    assert outbox.take_due() == []
    clock.now = HOLD_S
    (held,) = outbox.take_due()
    assert held.fields() == {
        "references": ["a"],
        "score": 1,
        "feedback": None,
        "scenario": "s",
        "agent_record_id": held.report_id,
    }
    assert outbox.take_back() == []


def test_taking_back_undoes_one_act_at_a_time(outbox: Outbox) -> None:
    outbox.hold([("a", "s")], score=0)
    outbox.hold([("a", "s"), ("b", "s")], feedback="shorter")
    assert outbox.take_back() == ["a", "b"]
    held = outbox.get("a")
    assert held
    assert (held.score, held.feedback) == (0, None)
    assert outbox.get("b") is None
    assert outbox.take_back() == ["a"]
    assert not outbox


def test_an_act_whose_reports_are_out_is_passed_over(outbox: Outbox, clock: Clock) -> None:
    outbox.hold([("a", "s")], score=0)
    clock.now = 1
    outbox.hold([("b", "s")], score=0)
    outbox.hold([("a", "s")], score=1)
    clock.now = 5
    assert {held.reference for held in outbox.take_due()} == {"a", "b"}
    outbox.hold([("c", "s")], score=0)
    assert outbox.take_back() == ["c"]
    assert outbox.take_back() == []


def test_what_does_not_get_through_is_sent_again_as_the_same_report(outbox: Outbox, clock: Clock) -> None:
    outbox.hold([("a", "s")], score=1)
    (held,) = outbox.take_due(everything=True)
    assert not send(outbox, Desk(DaemonUnreachable("away")), held)
    clock.now = HOLD_S
    (again,) = outbox.take_due()
    assert again.report_id == held.report_id
    desk = Desk()
    assert send(outbox, desk, again)
    assert len(desk.taken) == 1
    assert outbox.take_due(everything=True) == []


def test_what_finds_no_daemon_at_all_is_held_again(outbox: Outbox) -> None:
    def nobody() -> AsyncClient:
        raise DaemonUnreachable("away")

    outbox.hold([("a", "s")], score=1)
    (held,) = outbox.take_due(everything=True)
    assert asyncio.run(outbox.send(nobody, held)) is None
    assert outbox.take_back() == ["a"]


def test_what_is_refused_is_not_sent_again(outbox: Outbox) -> None:
    outbox.hold([("a", "s")], score=1)
    (held,) = outbox.take_due(everything=True)
    with pytest.raises(Invalid):
        send(outbox, Desk(Invalid("no")), held)
    assert outbox.take_due(everything=True) == []


def test_leaving_sends_what_was_on_its_way_too(outbox: Outbox, clock: Clock) -> None:
    outbox.hold([("a", "s")], score=1)
    clock.now = HOLD_S
    on_its_way = outbox.take_due()
    outbox.hold([("b", "s")], score=1)
    assert {held.reference for held in outbox.take_due(everything=True)} == {"a", "b"}
    assert on_its_way


def test_what_is_cancelled_on_its_way_stays_so_under_its_id(outbox: Outbox) -> None:
    outbox.hold([("a", "s")], score=1)
    (held,) = outbox.take_due(everything=True)

    class Deaf(Desk):
        async def report(self, **fields: Any) -> dict[str, Any]:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        send(outbox, Deaf(), held)
    assert outbox.take_due(everything=True) == [held]
    assert send(outbox, Desk(), held)
    assert outbox.take_due(everything=True) == []


def test_what_a_daemon_with_another_token_turns_away_is_held_again(outbox: Outbox) -> None:
    outbox.hold([("a", "s")], score=1)
    (held,) = outbox.take_due(everything=True)
    assert not send(outbox, Desk(Unauthorized("the token is wrong")), held)
    (again,) = outbox.take_due(everything=True)
    assert again.report_id == held.report_id


def test_what_is_said_anew_after_a_lost_answer_is_another_report(outbox: Outbox) -> None:
    """The first may have arrived: under its id the daemon would not take other content."""
    outbox.hold([("a", "s")], score=1)
    (held,) = outbox.take_due(everything=True)
    assert not send(outbox, Desk(DaemonUnreachable("away")), held)
    outbox.hold([("a", "s")], score=0)
    (corrected,) = outbox.take_due(everything=True)
    assert corrected.score == 0
    assert corrected.report_id != held.report_id


def test_what_is_said_while_the_first_is_lost_joins_it(outbox: Outbox) -> None:
    outbox.hold([("a", "s")], score=1)
    (held,) = outbox.take_due(everything=True)
    outbox.hold([("a", "s")], feedback="shorter")
    assert not send(outbox, Desk(DaemonUnreachable("away")), held)
    (joined,) = outbox.take_due(everything=True)
    assert (joined.score, joined.feedback) == (1, "shorter")
    assert joined.report_id != held.report_id


def test_what_could_not_be_sent_is_a_command(outbox: Outbox) -> None:
    outbox.hold([("run:1", "s")], score=0.5, feedback="it's long")
    outbox.hold([("b", "s")], feedback={"correction": "42"})
    first, second = outbox.take_due(everything=True)
    said = f"reef report run:1 -s s --id {first.report_id} --score 0.5 --feedback 'it'\"'\"'s long'"
    assert first.as_command() == said
    assert second.as_command() == f"reef report b -s s --id {second.report_id} --correction 42"


@pytest.mark.parametrize("said", ["@home it worked", '{"half', "[1] first", " {}", "plain 'words'"])
def test_a_command_says_the_very_words(said: str) -> None:
    held = Held("a", "s", due=0.0, feedback=said)
    words = shlex.split(held.as_command())
    read = read_feedback(words[words.index("--feedback") + 1], None)
    assert said == (read["text"] if isinstance(read, dict) else read)
