"""What Reef asks itself: recorded as its own kind, and an error is never an answer."""

import asyncio
from collections.abc import Iterator

import pytest

from daemon.runtimes.router import Router
from daemon.runtimes.upstream import HttpUpstream
from daemon.serving.exchange import Exchange
from daemon.serving.own import Completed
from daemon.serving.served import Served
from daemon.settings.model import PriceSection, UpstreamSection
from daemon.wire.prefix import Prefix
from reef.errors import ReefError, Unavailable, Unsupported, UpstreamFailed
from tests.daemon.serving.house import MemoryRecords, OneRelease
from tests.stub_provider import Fault, Raw, StubProvider, rule

ASKED = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProvider]:
    with StubProvider() as started:
        yield started


def complete(
    stub: StubProvider,
    records: MemoryRecords,
    *,
    api: str = "chat",
    model: str | None = "m",
    **options: object,
) -> Completed:
    async def run() -> Completed:
        section = UpstreamSection(
            name="stub",
            base_url=stub.url,
            model=model,
            api=(api,),
            price=PriceSection(input=1.0, output=2.0),
        )
        router = Router([HttpUpstream(section, {})], [section])
        exchange = Exchange(router, records, OneRelease(records))
        try:
            return await exchange.complete(ASKED, scenario="s", **options)
        finally:
            await router.close()

    return asyncio.run(run())


@pytest.mark.parametrize("api", ["chat", "messages", "responses"])
def test_an_episode(api: str, stub: StubProvider) -> None:
    stub.answer = rule("Use metric units.")
    records = MemoryRecords()
    candidate = Served("s", "c1", "t1", Prefix("Use metric units.", (("q", "a"),)))
    done = complete(stub, records, api=api, served=candidate, tags={"trial": "1"})
    assert done.text == "right"
    assert (done.usage.input_tokens, done.usage.output_tokens) == (4, 1)
    assert done.usage.cost == pytest.approx(6e-6)
    (draft,) = records.drafts
    assert (draft.id, draft.kind, draft.release_id, draft.content_id) == (done.receipt, "episode", "c1", "t1")
    assert draft.forwarded == stub.asked[-1].body != draft.request
    assert complete(stub, records, api=api).text == "wrong"


def test_a_runtime_that_is_handed_on_is_asked(stub: StubProvider) -> None:
    """Whatever the router would say: it has no runtime at all here."""
    stub.answer = lambda asked: asked.payload["model"]

    async def run() -> Completed:
        records = MemoryRecords()
        runtime = HttpUpstream(UpstreamSection(name="stub", base_url=stub.url), {})
        try:
            exchange = Exchange(Router([]), records, OneRelease(records))
            return await exchange.complete(ASKED, scenario="s", runtime=runtime, model="there")
        finally:
            await runtime.close()

    assert asyncio.run(run()).text == "there"


def test_a_call_need_not_be_recorded(stub: StubProvider) -> None:
    stub.answer = lambda asked: '{"a": 1}'
    records = MemoryRecords()
    done = complete(stub, records, record=False, schema={"type": "object"}, seed=3, model="own")
    assert (done.receipt, done.text, records.drafts) == (None, '{"a": 1}', [])
    payload = stub.asked[-1].payload
    assert (payload["seed"], payload["model"], payload["response_format"]["type"]) == (
        3,
        "own",
        "json_schema",
    )


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_a_refusal_is_an_error_and_a_failed_record(status: int, stub: StubProvider) -> None:
    stub.answer = lambda asked: Fault(status, "no luck")
    records = MemoryRecords()
    with pytest.raises(UpstreamFailed, match=f"`stub` answered {status}.*no luck") as caught:
        complete(stub, records)
    assert caught.value.status == status
    assert (records.drafts[0].status, records.drafts[0].http_status) == ("failed", status)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"<html>", "no JSON object: <html>"),
        (b'{"error": {"message": "no credits"}}', "200 with an error: no credits"),
        (b'{"choices": []}', "no answer of the dialect"),
    ],
)
def test_what_is_no_answer_is_an_error(stub: StubProvider, said: bytes, told: str) -> None:
    stub.answer = lambda asked: Raw((said,), "application/json")
    records = MemoryRecords()
    with pytest.raises(UpstreamFailed, match=told):
        complete(stub, records)
    assert (records.drafts[0].status, records.drafts[0].response) == ("failed", said)


def test_a_store_that_fails_and_a_missing_model_are_errors(stub: StubProvider) -> None:
    stub.answer = lambda asked: "ok"
    with pytest.raises(Unavailable, match="could not be stored: broken"):
        complete(stub, MemoryRecords(trouble=ReefError("broken")))
    with pytest.raises(Unsupported, match="names a model"):
        complete(stub, MemoryRecords(), model=None)


def test_nobody_is_asked_for_what_cannot_be_stored(stub: StubProvider) -> None:
    asked = len(stub.asked)
    full = MemoryRecords(failed=Unavailable("the disk is full"))
    with pytest.raises(Unavailable, match="the disk is full"):
        complete(stub, full)
    assert len(stub.asked) == asked
    assert complete(stub, full, record=False).receipt is None
