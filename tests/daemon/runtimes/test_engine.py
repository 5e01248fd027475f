"""The engine contract: what a child serves and refuses (`test_engine_child.py`: how it lives).

To hold another engine to it: a line in `engines.ENGINES`.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from daemon.runtimes.engine.kinds import KINDS
from daemon.wire.codec import codec_for
from reef.runtime import DIALECTS, Dialect
from tests.daemon.runtimes.engines import (
    CONTEXT,
    ENGINES,
    INSTALLED,
    LETTER,
    LONG,
    Make,
    request_of,
    said,
    started,
)
from tests.tiny_gguf import tiny_model, write


@pytest.mark.parametrize("kind", ENGINES)
def test_it_is_held_to_the_contract_where_it_is_installed(kind: str) -> None:
    if kind not in INSTALLED:
        pytest.skip(f"the engine contract on {kind}: not installed")
    assert KINDS[kind].version().startswith(f"{kind} "), "the same engine is there for Reef"


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_serves_every_dialect(make: Make, dialect: Dialect, stream: bool) -> None:
    async def scene() -> tuple[int, bytes]:
        async with started(make()) as engine:
            assert await engine.models() == ["tiny"]
            return await said(engine, request_of(dialect, stream=stream))

    status, body = asyncio.run(scene())
    assert status == 200
    parsed = codec_for(dialect).parse(body, stream=stream)
    assert parsed.response is not None
    if not (dialect == "chat" and stream):  # where usage is asked for with stream_options
        assert parsed.output_tokens == 4


@pytest.mark.parametrize(
    ("dialect", "first"), [("messages", "message_start"), ("responses", "response.created")]
)
def test_a_stream_begins_as_it_should_whatever_comes_first(
    make: Make, dialect: Dialect, first: str, tmp_path: Path
) -> None:
    """llama.cpp's own streams have no beginning where the first token is no whole character."""

    async def scene() -> tuple[int, bytes]:
        async with started(make(write(tmp_path / "halves.gguf", halves=True))) as engine:
            return await said(engine, request_of(dialect, stream=True))

    status, body = asyncio.run(scene())
    assert status == 200
    assert body.startswith(f"event: {first}\n".encode())
    assert body.count(first.encode()) == 2, "its name and its type, once"
    parsed = codec_for(dialect).parse(body, stream=True)
    assert (parsed.response is not None, parsed.output_tokens) == (True, 4)


def test_one_stream_after_another(make: Make) -> None:
    """llama.cpp closes a connection after a stream without saying so."""

    async def scene() -> list[int]:
        async with started(make()) as engine:
            return [(await said(engine, request_of("chat", stream=True)))[0] for _ in range(20)]

    assert asyncio.run(scene()) == [200] * 20


def test_it_counts_tokens(make: Make) -> None:
    async def scene() -> tuple[int, bytes]:
        async with started(make()) as engine:
            return await said(engine, request_of("messages", path="/messages/count_tokens"))

    status, body = asyncio.run(scene())
    assert status == 200
    assert json.loads(body)["input_tokens"] > 1


EARLIER_CALL = [
    {"role": "user", "content": "Go."},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c", "name": "go", "input": {"to": "north"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]},
]


@pytest.mark.parametrize(
    "more",
    [
        {"messages": EARLIER_CALL},
        {"tools": [{"name": "go", "description": "goes", "input_schema": {"type": "object"}}]},
    ],
    ids=["calls", "tools"],
)
def test_what_it_cannot_count_is_left_to_the_estimate(make: Make, more: dict[str, Any]) -> None:
    async def scene() -> tuple[int, bytes]:
        async with started(make()) as engine:
            return await said(engine, request_of("messages", path="/messages/count_tokens", **more))

    status, body = asyncio.run(scene())
    assert status in (200, 501), body
    if status == 501:  # as `daemon.serving.bridging.cannot_count` knows it
        assert json.loads(body).get("type") != "error"


def test_the_same_question_has_the_same_answer(make: Make) -> None:
    """What `copy_key` promises."""

    async def scene() -> tuple[str | None, list[str]]:
        async with started(make()) as engine:
            asked = [request_of("chat", f"question {n}", max_tokens=16) for n in (1, 2, 1, 1)]
            answers = [json.loads((await said(engine, one))[1]) for one in asked]
            return engine.copy_key(), [one["choices"][0]["message"]["content"] for one in answers]

    key, answers = asyncio.run(scene())
    assert key is not None
    assert answers[0] == answers[2] == answers[3]


def test_the_copy_key_names_the_file(make: Make, tmp_path: Path) -> None:
    async def key(path: Path) -> str | None:
        engine = make(path)
        assert engine.copy_key() is None, "not known before it starts"
        await engine.start()
        await engine.close()
        return engine.copy_key()

    async def scene() -> list[str | None]:
        other = write(tmp_path / "other.gguf", seed=1)
        return [await key(tiny_model()), await key(tiny_model()), await key(other)]

    first, again, other = asyncio.run(scene())
    assert first == again != other


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_overlong_prompt_is_refused_in_words_that_clients_know(make: Make, dialect: Dialect) -> None:
    async def scene() -> tuple[int, bytes]:
        async with started(make()) as engine:
            return await said(engine, request_of(dialect, "hi " * CONTEXT))

    status, body = asyncio.run(scene())
    told: dict[str, Any] = json.loads(body)
    assert status == 400
    assert "prompt is too long" in told["error"]["message"]
    assert f"> {CONTEXT} maximum" in told["error"]["message"]
    assert told["error"]["type"] == "invalid_request_error"
    assert told["error"]["code"] == "context_length_exceeded"
    assert (told.get("type") == "error") == (dialect == "messages")


PIXEL = "data:image/png;base64,iVBORw0KGgo="
SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
UNREAD: list[tuple[Dialect, dict[str, Any], str]] = [
    ("chat", {"type": "image_url", "image_url": {"url": PIXEL}}, "images"),
    ("chat", {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, "audio"),
    ("chat", {"type": "input_video", "input_video": {"data": "", "format": "mp4"}}, "videos"),
    ("messages", {"type": "image", "source": SOURCE}, "images"),
    ("responses", {"type": "input_image", "image_url": PIXEL}, "images"),
]


def test_what_the_model_cannot_read_is_refused_for_good(make: Make) -> None:
    """With a status that no SDK tries again, streamed or not."""

    async def scene() -> None:
        async with started(make()) as engine:
            for dialect, part, what in UNREAD:
                for stream in (False, True):
                    item = [{"role": "user", "content": [part]}]
                    more = {"input" if dialect == "responses" else "messages": item, "stream": stream}
                    status, body = await said(engine, request_of(dialect, **more))
                    told: dict[str, Any] = json.loads(body)
                    assert status == 400, body
                    assert f"the model `tiny` reads no {what} (hint: " in told["error"]["message"]
                    assert "reef models add" in told["error"]["hint"]
                    assert told["error"]["type"] == "invalid_request_error"
                    assert (told.get("type") == "error") == (dialect == "messages")

    asyncio.run(scene())


def test_messages_and_tools_that_are_none_are_the_clients_mistake(make: Make) -> None:
    async def scene() -> list[int]:
        async with started(make()) as engine:
            messages = [{"role": "assistant", "tool_calls": "x"}]
            odd: list[dict[str, Any]] = [{"messages": messages}, {"tools": [{"type": "weird"}]}]
            return [(await said(engine, request_of("chat", **more)))[0] for more in odd]

    assert set(asyncio.run(scene())) <= {200, 400}


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_who_leaves_before_the_first_word_is_noticed(make: Make, stream: bool, tmp_path: Path) -> None:
    """One is answered with bytes that are held back, for they are no characters; one waits for its turn."""

    async def scene() -> int:
        async with started(make(write(tmp_path / "halves.gguf", halves=True), context=LONG)) as engine:
            long = request_of("chat", stream=stream, max_tokens=LONG)
            asking = [asyncio.create_task(said(engine, long)) for _ in range(2)]
            await asyncio.sleep(0.5)  # time to be on their way; the answer is due in any case
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            async with asyncio.timeout(10):
                return (await said(engine, request_of("chat")))[0]

    assert asyncio.run(scene()) == 200


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_an_answer_that_nobody_waits_for_is_broken_off(make: Make, stream: bool) -> None:
    """Else a request that needs its turn would wait until the long one is done."""

    async def scene() -> int:
        async with started(make(context=LONG)) as engine:
            asked = request_of("chat", stream=stream, max_tokens=LONG, logit_bias=LETTER)
            if stream:
                response = await engine.send(asked)
                await anext(aiter(response.body))
                await response.close()
            else:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await said(engine, asked)
            async with asyncio.timeout(10):
                return (await said(engine, request_of("chat")))[0]

    assert asyncio.run(scene()) == 200
