"""What tokens cost, by the rows that a user wrote."""

import json

import pytest

from daemon.runtimes.prices import PriceTable
from daemon.runtimes.router import Router
from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import PriceRow, PriceSection, UpstreamSection
from daemon.wire.bridge.crossing import read_answer
from daemon.wire.codec import codec_for
from reef.runtime import Billed, Dialect, Price
from tests.stub_dialects import sse

RECEIPT = "01980000-0000-7000-8000-000000000000"
ROWS = (
    PriceRow(model="claude-*", upstream="main", input=3, output=15, cached_input=0.3, cache_write=3.75),
    PriceRow(model="gpt-5", input=2, output=8),
    PriceRow(model="gpt-*", input=1, output=4),
)
OWN = UpstreamSection(
    name="own",
    base_url="http://h",
    price=PriceSection(input=7, output=7),
    alias={"claude-small": "gpt-5-mini"},
)
USAGE = {
    "chat": {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 600},
    },
    "responses": {
        "input_tokens": 1000,
        "output_tokens": 50,
        "input_tokens_details": {"cached_tokens": 600},
    },
    "messages": {
        "input_tokens": 300,
        "output_tokens": 50,
        "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 100,
    },
}
BILLED = {
    "chat": Billed(400, 50, 600),
    "responses": Billed(400, 50, 600),
    "messages": Billed(300, 50, 600, 100),
}


def input_price(table: PriceTable, upstream: str, *models: str | None) -> float | None:
    price = table.find(upstream, *models)
    return price.input if price else None


def test_the_first_row_that_fits_counts_then_the_upstreams_own() -> None:
    table = PriceTable(ROWS, (OWN,))
    assert input_price(table, "main", "claude-sonnet") == 3
    assert input_price(table, "other", "claude-sonnet") is None
    assert input_price(table, "other", "gpt-5-2025-08-07", "gpt-5") == 2
    assert input_price(table, "other", "gpt-5-2025-08-07") == 1
    assert input_price(table, "own", "gpt-4") == 1
    assert input_price(table, "own", "llama", None) == 7
    assert input_price(table, "own", None) == 7
    assert input_price(PriceTable(), "own", "gpt-5") is None


def test_an_alias_costs_what_is_asked_in_its_place() -> None:
    router = Router([HttpUpstream(OWN, {})], [OWN], ROWS)
    price = router.price("own", "claude-small")
    assert price is not None
    assert price.input == 1
    assert router.price("own", "anything", "gpt-5") == Price(2, 8)
    assert router.price("gone", "gpt-5") is router.price(None, "gpt-5") is None


@pytest.mark.parametrize("dialect", USAGE)
def test_tokens_are_billed_once_whatever_the_dialect_counts_among_the_input(dialect: Dialect) -> None:
    answer = {"id": "1", "model": "m", "usage": USAGE[dialect]}
    parsed = codec_for(dialect).parse(json.dumps(answer).encode(), stream=False)
    assert parsed.billed == BILLED[dialect]
    price = Price(10, 100, cached_input=1, cache_write=20)
    billed = BILLED[dialect]
    expected = billed.fresh * 10 + 600 * 1 + billed.written * 20 + 50 * 100
    assert price.cost(billed) == pytest.approx(expected / 1e6)
    assert Price(10, 100).cost(billed) == pytest.approx((1000 * 10 + 50 * 100) / 1e6)
    unknown = codec_for(dialect).parse(b'{"usage": {"input_tokens": 5, "prompt_tokens": 5}}', stream=False)
    assert unknown.billed is None


def test_over_a_bridge_the_upstreams_own_count_is_billed() -> None:
    message = {"type": "message", "id": "msg_1", "role": "assistant", "model": "m", "content": []}
    usage = USAGE["messages"]
    body = json.dumps(message | {"usage": usage, "stop_reason": "end_turn"}).encode()
    asked = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    parsed = read_answer("chat", body, stream=False, bridged="messages", request=asked, receipt=RECEIPT)
    assert parsed.input_tokens == 1000
    assert parsed.billed == BILLED["messages"]
    events = [
        sse({"type": "message_start", "message": message | {"usage": usage}}, "message_start"),
        sse({"type": "message_stop"}, "message_stop"),
    ]
    streamed = read_answer(
        "chat", b"".join(events), stream=True, bridged="messages", request=asked, receipt=RECEIPT
    )
    assert streamed.billed == BILLED["messages"]
