"""One agent's session of 50 turns, each sending all that was said before: its bytes, none of them lost."""

import base64
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection

from bench.prose import prose
from bench.report import Check
from bench.store.records import open_book
from daemon.records.book import RecordBook
from daemon.records.draft import Draft
from daemon.records.query import find, to_wire
from daemon.store.writer import Together
from daemon.wire.codec import codec_for
from reef.feedback import Usage
from reef.ids import new_receipt, now

_TURNS = 50
_SYSTEM_BYTES, _TOOLS, _TOOL_BYTES, _TURN_BYTES = 16_000, 20, 1000, 5600


def measure(folder: Path) -> tuple[str, dict[str, float], list[Check]]:
    place = folder / "session"
    place.mkdir()
    store, book = open_book(place, ["s"])
    drafts = _session()
    spent: list[float] = []
    empty = _stored(place)
    for draft in drafts:
        store.writer.submit_together(_timed(book, spent), draft).result()
    exact = 0
    for draft in drafts:
        raw = store.read_now(lambda c, d=draft: to_wire(c, find(c, d.id), raw=True)["raw"])
        exact += base64.b64decode(raw["request"]) == draft.request
        exact += base64.b64decode(raw["response"]) == draft.response
    store.close()
    plain = sum(len(draft.request) + len(draft.response) for draft in drafts)
    stored = _stored(place) - empty
    cpu_ms = sum(spent) / len(spent) * 1000
    values = {
        "plain MB": plain / 1e6,
        "stored, 1 of": plain / stored,
        "CPU ms a request": cpu_ms,
        "bodies read back exactly": float(exact),
    }
    return (
        "a session of 50 turns",
        values,
        [
            Check(11, "a session of 50 turns", plain / stored, 20, "x smaller than plain", at_least=True),
            Check(11, "bodies read back byte for byte", float(exact), 2 * _TURNS, "", at_least=True),
            Check(11, "CPU to store a request", cpu_ms, 1.0, "ms"),
        ],
    )


def _timed(book: RecordBook, spent: list[float]) -> Together[Draft, Usage]:
    def insert(connection: Connection, drafts: Sequence[Draft]) -> Sequence[Usage]:
        began = time.thread_time()
        stored = book._insert(connection, drafts)
        spent.append(time.thread_time() - began)
        return stored

    return insert


def _stored(place: Path) -> int:
    return sum(file.stat().st_size for file in place.iterdir())


def _session() -> list[Draft]:
    dice = random.Random(7)

    tools = [
        {"type": "function", "function": {"name": f"tool_{number}", "description": prose(dice, _TOOL_BYTES)}}
        for number in range(_TOOLS)
    ]
    messages: list[dict[str, object]] = [{"role": "system", "content": prose(dice, _SYSTEM_BYTES)}]
    drafts = []
    for turn in range(_TURNS):
        messages.append({"role": "user" if not turn else "tool", "content": prose(dice, _TURN_BYTES - 600)})
        body = json.dumps({"model": "m", "messages": messages, "tools": tools, "stream": False}).encode()
        answer = {"role": "assistant", "content": prose(dice, 500)}
        said = {
            "id": f"chatcmpl-{turn}",
            "object": "chat.completion",
            "model": "m",
            "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 40_000, "completion_tokens": 100, "total_tokens": 40_100},
        }
        drafts.append(
            Draft(
                new_receipt(),
                "s",
                now(),
                "chat",
                request=body,
                facts=codec_for("chat").facts(body),
                response=json.dumps(said).encode(),
                session="one",
                http_status=200,
                model="m",
            )
        )
        messages.append(answer)
    return drafts
