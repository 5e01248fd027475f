"""Answers that no provider's documents show: their clients get them, and the records tell what they were."""

import json
from collections.abc import Iterator, Sequence

import httpx
import pytest

from daemon.wire import sse
from daemon.wire.codec import codec_for
from daemon.wire.tail import Mark
from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS, body_of
from tests.e2e.running import running
from tests.wreck import Asked, Step, Wreck, said, stream

TYPES = {"text": "text/plain", "json": "application/json", "lines": "application/x-ndjson"}
"""What upstreams call a stream of events that is one."""
DIRECT = [*TYPES, "refused", "nested", "logprobs", "half", "page"]
GARBLED = {"half": b'data: {"choices": [{"delta": {"con\n\n', "page": b"<html>502 Bad gateway</html>\n\n"}
"""What stands among a stream's events, and is none."""
REFUSED = b'{"error": "no credits"}'
DEEP = b"[" * 600 + b"]" * 600


def event(value: dict[str, object], name: str | None = None) -> bytes:
    """`DEEP` stands where the value says "deep"."""
    return sse.encode(json.dumps(value).encode().replace(b'"deep"', DEEP), name)


def nested(asked: Asked) -> list[bytes]:
    """A right answer in which one event more is nested so deeply that few functions may recurse over it."""
    head, *rest = asked.events
    if asked.dialect == "chat":
        delta = {
            "tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": "{}", "x": "deep"}}]
        }
        return [head, event({"choices": [{"index": 0, "delta": delta}]}), *rest]
    if asked.dialect == "messages":
        index, block = 7, {"type": "tool_use", "id": "t", "name": "f", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": f'{{"x": {DEEP.decode()}}}'}
        more = [
            event(
                {"type": "content_block_start", "index": index, "content_block": block}, "content_block_start"
            ),
            event({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta"),
            event({"type": "content_block_stop", "index": index}, "content_block_stop"),
        ]
        return [head, *more, *rest]
    return [head, event({"type": "response.odd", "x": "deep"}, "response.odd"), *rest]


def script(asked: Asked) -> Sequence[Step]:
    match asked.model.removeprefix("chat:"):
        case "refused":
            return [said(200, REFUSED)]
        case "nested":
            return [stream(*nested(asked))]
        case "half" | "page":
            return [stream(*asked.events[:3], GARBLED[asked.model.removeprefix("chat:")], *asked.events[3:])]
        case "logprobs":
            chunk = {"choices": [{"index": 0, "delta": {}, "logprobs": []}]}
            more = {"choices": [{"index": 0, "delta": {}, "logprobs": {"content": []}}]}
            head, *rest = asked.events
            return [stream(head, event(chunk), event(more), *rest)]
        case kind:
            return [stream(*asked.events).replace(b"text/event-stream", TYPES[kind].encode())]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("odd")
    with Wreck(script) as wreck:
        rows = [
            f'[[upstream]]\nname = "{name}"\nbase_url = "{wreck.url}"\nmodels = {json.dumps(models)}\n'
            f"api = {json.dumps(api)}\n"
            for name, models, api in (("over chat", ["chat:*"], ["chat"]), ("direct", DIRECT, DIALECTS))
        ]
        (folder / "reef.toml").write_text("".join(rows))
        with running(folder) as daemon, daemon.client() as opened:
            yield opened


def ask(
    client: httpx.Client, dialect: Dialect, model: str, *, stream: bool
) -> tuple[httpx.Response, dict[str, object]]:
    answer = client.post(PATHS[dialect], json=body_of(dialect, stream=stream, model=model))
    record = client.get(f"/reef/records/{answer.headers['x-reef-agent-record-id']}").raise_for_status().json()
    return answer, record


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("over", ["", "chat:"])
@pytest.mark.parametrize("kind", TYPES)
def test_events_that_are_called_something_else_are_events(
    client: httpx.Client, dialect: Dialect, kind: str, over: str
) -> None:
    answer, record = ask(client, dialect, over + kind, stream=True)
    assert codec_for(dialect).parse(answer.content, stream=True).text == "one two three"
    assert (answer.status_code, record["status"], record["stream"]) == (200, "complete", True)
    bridged = over and dialect != "chat"
    assert answer.headers["content-type"] == ("text/event-stream" if bridged else TYPES[kind])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_may_be_a_mere_text(client: httpx.Client, dialect: Dialect) -> None:
    for streamed in (False, True):
        answer, record = ask(client, dialect, "refused", stream=streamed)
        assert (answer.status_code, record["status"]) == (502, "failed")
        assert "no credits" in answer.json()["error"]["message"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_nested_deeply_is_passed_on_and_kept(client: httpx.Client, dialect: Dialect) -> None:
    answer, record = ask(client, dialect, "nested", stream=True)
    assert DEEP in answer.content.replace(b'\\"', b'"')
    assert codec_for(dialect).parse(answer.content, stream=True).text == "one two three"
    assert record["status"] == "complete"


def test_probabilities_that_are_none_are_passed_on_and_kept(client: httpx.Client) -> None:
    answer, record = ask(client, "chat", "logprobs", stream=True)
    assert codec_for("chat").parse(answer.content, stream=True).text == "one two three"
    assert record["status"] == "complete"


def test_a_request_is_refused_or_can_be_looked_up_however_deep(client: httpx.Client) -> None:
    seen = set()
    for depth in (
        100,
        250,
        300,
        600,
        800,
        3000,
        200_000,
    ):  # how deep Python itself can read depends on its version
        body = json.dumps(body_of("chat", model="logprobs", stream=True, x="deep")).encode()
        body = body.replace(b'"deep"', b"[" * depth + b"]" * depth)
        answer = client.post(PATHS["chat"], content=body, headers={"content-type": "application/json"})
        seen.add(answer.status_code)
        if answer.status_code == 200:
            receipt = answer.headers["x-reef-agent-record-id"]
            assert client.get(f"/reef/records/{receipt}").raise_for_status().json()["status"] == "complete"
        else:
            assert "too deeply" in answer.json()["error"]["message"]
    assert seen == {200, 400}
    assert client.get("/reef/records?payload=1&limit=100").raise_for_status().json()["records"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("what", GARBLED)
def test_a_stream_with_a_garbled_event_is_no_whole_answer(
    client: httpx.Client, what: str, dialect: Dialect
) -> None:
    """Its client gets the bytes, and the record says what is wrong with them: it must not teach."""
    answer, record = ask(client, dialect, what, stream=True)
    assert GARBLED[what] in answer.content
    assert codec_for(dialect).mark(sse.split(answer.content)[0][-1]) is Mark.TERMINAL
    assert record["status"] == "failed"
    assert "an event of the stream cannot be read: " in record["error"]["message"]


@pytest.mark.parametrize("dialect", ["messages", "responses"])
@pytest.mark.parametrize("what", GARBLED)
def test_over_a_bridge_nobody_gets_what_is_left_of_a_garbled_stream(
    client: httpx.Client, what: str, dialect: Dialect
) -> None:
    answer, record = ask(client, dialect, f"chat:{what}", stream=True)
    last = sse.split(answer.content)[0][-1]
    assert (codec_for(dialect).mark(last), b"cannot be read" in last) == (Mark.ERROR, True)
    assert (record["status"], "cannot be read" in record["error"]["message"]) == ("failed", True)
