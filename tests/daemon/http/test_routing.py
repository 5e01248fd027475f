"""Requests through several upstreams: where they go, under which name, and what the record says."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from daemon.settings.model import UpstreamSection
from reef.errors import Unavailable
from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import House, house
from tests.stub_provider import Asked, Fault, Reply, StubProvider


@pytest.fixture(scope="module")
def second() -> Iterator[StubProvider]:
    with StubProvider(lambda asked: "second") as started:
        yield started


@pytest.fixture(scope="module")
def pair(provider: StubProvider, second: StubProvider) -> Iterator[House]:
    first = UpstreamSection(
        name="first", base_url=provider.url, models=("m*",), retries=1, fallback=("second",)
    )
    other = UpstreamSection(
        name="second", base_url=second.url, api=("chat",), alias={"m": "small", "big-*": "large"}
    )
    with house([first, other]) as built:
        yield built


@pytest.fixture
def home(pair: House, stub: StubProvider, second: StubProvider) -> House:
    pair.records.drafts.clear()
    second.asked.clear()
    return pair


def test_a_store_that_fails_is_not_taken_for_an_upstream_that_does(home: House, stub: StubProvider) -> None:
    stub.answer = lambda asked: Fault(503, headers={"retry-after-ms": "1"})
    home.records.trouble = Unavailable("the disk is full")
    try:
        answer = httpx.post(home.url + PATHS["chat"], json=body_of("chat"))
    finally:
        home.records.trouble = None
    assert (answer.status_code, answer.headers.get("x-reef-agent-record-id")) == (503, None)
    (draft,) = home.records.refused
    assert (draft.status, draft.error_type) == ("complete", None)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_another_upstream_stands_in(
    home: House, stub: StubProvider, second: StubProvider, dialect: Dialect, stream: bool
) -> None:
    stub.answer = lambda asked: Fault(503, headers={"retry-after-ms": "1"})
    answer = httpx.post(home.url + PATHS[dialect], json=body_of(dialect, stream=stream))
    assert (answer.status_code, "second" in answer.text) == (200, True)
    (draft,) = home.records.drafts
    assert (draft.status, draft.upstream_name, draft.model) == ("complete", "second", "m")
    assert draft.attempts == [
        "upstream `first` answered 503",
        "upstream `first` answered 503: overloaded: the stub was told to fail",
    ]
    assert draft.bridged == (None if dialect == "chat" else "chat")
    assert [asked.payload["model"] for asked in (*stub.asked, *second.asked)] == ["m", "m", "small"]


def test_a_retry_that_helps_is_recorded_as_one_exchange(home: House, stub: StubProvider) -> None:
    def answer(_: Asked) -> Fault | Reply:
        return Fault(429, headers={"retry-after": "0"}) if len(stub.asked) == 1 else Reply("well")

    stub.answer = answer
    assert httpx.post(f"{home.url}/v1/messages", json=body_of("messages")).status_code == 200
    (draft,) = home.records.drafts
    assert (draft.status, draft.upstream_name) == ("complete", "first")
    assert draft.attempts == ["upstream `first` answered 429"]
    assert draft.forwarded is None


def test_a_stream_that_broke_is_not_repeated(home: House, stub: StubProvider, second: StubProvider) -> None:
    stub.answer = lambda asked: Fault(after=2)
    httpx.post(f"{home.url}/v1/messages", json=body_of("messages", stream=True))
    assert (len(stub.asked), len(second.asked)) == (1, 0)
    assert home.records.drafts[0].status == "failed"


def test_tokens_are_counted_by_who_can_count(home: House, second: StubProvider) -> None:
    answer = httpx.post(f"{home.url}/v1/messages/count_tokens", json=body_of("messages", "one two"))
    assert answer.json() == {"input_tokens": 2}
    assert not second.asked


def test_only_the_models_name_changes_on_the_way(home: House, second: StubProvider) -> None:
    body = b'{ "messages": [{"role": "user", "content": "hi"}],  "model" : "big-1" , "x": 1.0}'
    answer = httpx.post(f"{home.url}/v1/chat/completions", content=body)
    assert answer.status_code == 200
    assert second.asked[0].body == body.replace(b'"big-1"', b'"large"')
    (draft,) = home.records.drafts
    assert (draft.model, draft.forwarded) == ("big-1", second.asked[0].body)


def test_aliases_are_listed_and_patterns_are_not(home: House) -> None:
    listed = [row["id"] for row in httpx.get(f"{home.url}/v1/models").json()["data"]]
    assert "m" in listed
    assert not [name for name in listed if "*" in name]


def test_no_more_than_so_many_at_once(provider: StubProvider, stub: StubProvider) -> None:
    section = UpstreamSection(name="narrow", base_url=provider.url, concurrency=2)
    stub.delay_s = 0.05
    with house([section]) as narrow, httpx.Client(base_url=narrow.url, timeout=20) as client:

        def one(number: int) -> int:
            path = f"/s/s{number % 3}/v1/chat/completions"
            return client.post(path, json=body_of("chat", stream=number % 2 == 0)).status_code

        began = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(one, range(8))) == {200}
        assert time.monotonic() - began > 4 * 0.05 * 0.9
        assert len(stub.asked) == 8
        assert len(narrow.records.wait(8)) == 8


def test_who_leaves_the_queue_is_recorded_and_asks_nobody(provider: StubProvider, stub: StubProvider) -> None:
    section = UpstreamSection(name="narrow", base_url=provider.url, concurrency=1)
    stub.delay_s = 2.0
    with house([section]) as narrow:
        first = threading.Thread(
            target=lambda: httpx.post(f"{narrow.url}/v1/messages", json=body_of("messages"))
        )
        first.start()
        until = time.monotonic() + 5
        while not stub.asked and time.monotonic() < until:
            time.sleep(0.005)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{narrow.url}/v1/messages", json=body_of("messages", "gone"), timeout=0.2)
        first.join()
        drafts = narrow.records.wait(2)
        gone, answered = sorted(drafts, key=lambda draft: draft.status)
        assert (gone.status, gone.upstream_ms) == ("aborted", None)
        assert answered.status == "complete"
        assert answered.upstream_ms is not None
        assert len(stub.asked) == 1


def test_the_time_of_an_upstream_is_without_the_wait_for_its_turn(
    provider: StubProvider, stub: StubProvider
) -> None:
    go_on = threading.Event()

    async def held(asked: Asked) -> str:
        await asyncio.to_thread(go_on.wait, 10)
        return "well"

    stub.answer = held
    section = UpstreamSection(name="narrow", base_url=provider.url, concurrency=1)
    with house([section]) as narrow, ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            pool.submit(httpx.post, f"{narrow.url}/v1/messages", json=body_of("messages"))
        until = time.monotonic() + 5
        while not narrow.exchange.router.states()[0].waiting and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(0.2)  # so long it waits at least
        go_on.set()
        _, waited = narrow.records.wait(2)
        assert waited.total_ms is not None
        assert waited.upstream_ms is not None
        assert waited.total_ms - waited.upstream_ms >= 200


def test_a_scenario_may_have_an_upstream_of_its_own(
    provider: StubProvider, stub: StubProvider, second: StubProvider
) -> None:
    sections = [
        UpstreamSection(name=name, base_url=url) for name, url in (("a", provider.url), ("b", second.url))
    ]
    with house(sections, upstream_of={"shop": "b"}.get) as both:
        for scenario in ("shop", "other"):
            httpx.post(f"{both.url}/s/{scenario}/v1/chat/completions", json=body_of("chat"))
        assert [draft.upstream_name for draft in both.records.drafts] == ["b", "a"]
