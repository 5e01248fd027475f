"""Trying again before the first byte, against a provider that fails as it is told to."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from daemon.runtimes import again
from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import UpstreamSection
from reef.errors import Invalid, ReefError, TimedOut, UpstreamFailed
from reef.runtime import ProviderRequest, ProviderResponse
from tests.stub_provider import Asked, Fault, Reply, StubProvider

BODY = b'{"messages":[{"role":"user","content":"hi"}]}'
SOON = {"retry-after-ms": "1"}


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as started:
        yield started


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "_FIRST_S", 0.001)


def send(url: str, retries: int = 2) -> tuple[int, list[str]]:
    """The status of the answer, and how the tries before it ended."""
    section = UpstreamSection(name="main", base_url=url, retries=retries, read_timeout_s=5)
    request = ProviderRequest("chat", "/chat/completions", (), BODY)

    async def run() -> int:
        runtime = HttpUpstream(section, {})
        try:
            response = await runtime.send(request)
            await response.close()
            return response.status
        finally:
            await runtime.close()

    return asyncio.run(run()), request.attempts


def failing(times: int, fault: Fault, stub: StubProvider) -> None:
    def answer(_: Asked) -> Fault | Reply:
        return fault if len(stub.asked) <= times else Reply("well")

    stub.answer = answer


@pytest.mark.parametrize("status", sorted(again.REPEATED))
def test_what_may_pass_is_tried_again(stub: StubProvider, status: int) -> None:
    failing(2, Fault(status), stub)
    said = f"upstream `main` answered {status}"
    assert send(stub.url) == (200, [said, said])


@pytest.mark.parametrize("status", [400, 401, 404, 422, 501])
def test_what_will_not_pass_is_not(stub: StubProvider, status: int) -> None:
    failing(9, Fault(status), stub)
    assert send(stub.url) == (status, [])


def test_the_last_failure_stands(stub: StubProvider) -> None:
    failing(9, Fault(503, headers=SOON), stub)
    assert send(stub.url)[0] == 503
    assert len(stub.asked) == 3
    stub.asked.clear()
    assert send(stub.url, retries=0) == (503, [])
    assert len(stub.asked) == 1


def test_an_upstream_that_says_not_to_is_left_alone(stub: StubProvider) -> None:
    for headers in ({"x-should-retry": "false"}, {"retry-after": "31"}):
        stub.asked.clear()
        failing(9, Fault(429, headers=headers), stub)
        assert send(stub.url) == (429, [])


def test_one_that_refuses_the_connection_is_tried_again() -> None:
    with StubProvider() as gone:
        url = gone.url
    request = ProviderRequest("chat", "/chat/completions", (), BODY)

    async def run() -> None:
        runtime = HttpUpstream(UpstreamSection(name="main", base_url=url, retries=2), {})
        try:
            await runtime.send(request)
        finally:
            await runtime.close()

    with pytest.raises(UpstreamFailed, match="refused"):
        asyncio.run(run())
    assert len(request.attempts) == 2
    assert all("refused the connection" in said for said in request.attempts)


def date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


async def nothing() -> AsyncIterator[bytes]:
    yield b""


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ((("retry-after", "2"),), 2, 2),
        ((("retry-after", "0.5"),), 0.5, 0.5),
        ((("retry-after-ms", "30"), ("retry-after", "9")), 0.03, 0.03),
        ((("retry-after-ms", "x"), ("retry-after", "3")), 3, 3),
        ((("retry-after", "soon"),), 0.0007, 0.0013),
    ],
)
def test_how_long_it_waits(headers: tuple[tuple[str, str], ...], least: float, most: float) -> None:
    wait = again._wait(ProviderResponse(429, headers, nothing()), 0)
    assert wait is not None
    assert least <= wait <= most


def test_a_date_to_wait_for() -> None:
    for seconds, least, most in ((29, 1, 29), (-10, 0, 0)):
        headers = (("retry-after", date(seconds)),)
        wait = again._wait(ProviderResponse(429, headers, nothing()), 0)
        assert wait is not None
        assert least <= wait <= most


@pytest.mark.parametrize(
    ("error", "repeated"),
    [
        (UpstreamFailed("refused", sent=False), True),
        (UpstreamFailed("broke off"), True),
        (TimedOut("no connection", sent=False), True),
        (TimedOut("no answer"), False),
    ],
)
def test_what_may_still_be_at_work_is_not_repeated(error: ReefError, repeated: bool) -> None:
    asked = 0

    async def broken(_: ProviderRequest) -> ProviderResponse:
        nonlocal asked
        asked += 1
        raise error

    with pytest.raises(type(error)):
        asyncio.run(again.send_again(broken, ProviderRequest("chat", "/", (), b""), "main", 1))
    assert asked == 1 + repeated


def test_who_pays_is_asked_before_another_try() -> None:
    """With whether the one before may have been answered; what it raises ends the request."""
    told: list[bool] = []

    async def again_(may_have_cost: bool) -> None:
        told.append(may_have_cost)
        if len(told) == 3:
            raise Invalid("no money")

    ends = iter([UpstreamFailed("refused", sent=False), UpstreamFailed("broke off"), None])

    async def send(_: ProviderRequest) -> ProviderResponse:
        if (error := next(ends)) is not None:
            raise error
        return ProviderResponse(503, (("retry-after", "0"),), nothing())

    request = ProviderRequest("chat", "/", (), b"", on_again=again_)
    with pytest.raises(Invalid, match="no money"):
        asyncio.run(again.send_again(send, request, "main", 5))
    assert told == [False, True, False]
