"""The fault matrix: each fault of an upstream in each dialect, buffered or streamed, direct or bridged.

Each cell checks the status or the error event in the client's own dialect, the record, and that the next
request is answered.
"""

import gzip
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from daemon.wire import sse
from daemon.wire.codec import codec_for
from daemon.wire.tail import Mark
from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS, body_of
from tests.e2e.running import Daemon, running
from tests.wreck import CUT, Asked, Step, Wreck, begun, said, stream

SILENCE_S = 0.25
"""After which the daemon gives an upstream up."""
LONG = 30.0
PAUSE_S = 0.05
HTML = b"<!DOCTYPE html><html><body><h1>Bad gateway</h1></body></html>"
GZIP = "content-encoding: gzip"


@dataclass(frozen=True)
class Fault:
    """What an upstream does, and what comes of it.

    `status` is what the client gets; with `breaks`, one that asked for a stream gets the beginning of it and
    an error event. `error` is the record's error type; `words` stand in its message.
    """

    script: Callable[[Asked], Sequence[Step]]
    status: int = 502
    error: str = "upstream"
    words: str = ""
    breaks: bool = False
    headers: tuple[tuple[str, str], ...] = ()


def status(number: int, given: int, *headers: str, **more: Any) -> Fault:
    """An error status with an error of the upstream's dialect; the client gets `given`."""
    return Fault(
        lambda asked: [said(number, asked.error(number, "it is too much"), "application/json", *headers)],
        given,
        words=f"answered {number}: {more.pop('word', '')}it is too much",
        **more,
    )


def in_error(asked: Asked) -> bytes:
    """A stream with the dialect's error event in it, said by the upstream."""
    event = codec_for(asked.dialect).error_event("the model stumbled")
    return stream(*asked.events[:4], event)


def broken(asked: Asked, *then: Step) -> list[Step]:
    """The half of an answer, in the form that was asked for, and what comes then."""
    if asked.stream:
        return [stream(*asked.events[:4], ends=False), *then]
    return [begun(asked.whole), *then]


def unfinished(asked: Asked) -> list[Step]:
    return [stream(*asked.events[:4])] if asked.stream else [said(200, asked.whole[:-20])]


def only_its_end(asked: Asked) -> bytes:
    """A stream that ends well and says nothing; a responses stream says all at its end."""
    return stream(*(asked.events[-1:] if asked.dialect != "responses" else [b": ping\n\n"]))


EMPTY: dict[str, bytes] = {
    "chat": b'{"id": "c", "choices": [{"index": 0, "message": null}]}',
    "messages": b'{"type": "message", "role": "assistant", "content": [], "stop_reason": null}',
    "responses": b'{"object": "response", "status": "completed", "output": []}',
}


def nothing_said(asked: Asked) -> list[bytes]:
    """A beginning and an end, and nothing in between."""
    last = asked.events[-1:]
    if asked.dialect == "responses":
        done = {"type": "response.completed", "response": json.loads(EMPTY["responses"])}
        last = [sse.encode(json.dumps(done).encode(), "response.completed")]
    return [asked.events[0], *last]


def garbage(asked: Asked) -> list[Step]:
    if asked.stream:
        return [stream(HTML, b"\xff\xfe\x00 no event at all\n", b"data: {half\n\n")]
    return [said(200, b"\xff\xfe\x00 no answer at all")]


def packed_badly(asked: Asked) -> list[Step]:
    whole = gzip.compress(b"".join(asked.events) if asked.stream else asked.whole)
    if asked.stream:
        return [stream(whole[: len(whole) // 2], headers=[GZIP])]
    return [said(200, whole[:-12], "application/json", GZIP)]


DEAD = {"refused": "refused the connection", "dns": "no such host", "tls": "TLS handshake failed"}
FAULTS = {
    **{name: Fault(lambda asked: [], words=words) for name, words in DEAD.items()},
    "hangs up": Fault(lambda asked: [], words="without an answer"),
    "resets": Fault(lambda asked: [CUT], words="without an answer"),
    "no http": Fault(lambda asked: [b"SSH-2.0-OpenSSH_9.6\r\n\r\n"], words="failed"),
    "silent": Fault(lambda asked: [LONG], 504, "timeout", "did not answer in time"),
    "half a head": Fault(lambda asked: [b"HTTP/1.1 200 OK\r\nconte", LONG], 504, "timeout", "in time"),
    "400": status(400, 400),
    "401": status(401, 401),
    "404": status(404, 404),
    "413": status(413, 413),
    "418": status(418, 400),
    "422": status(422, 422),
    "429": status(
        429,
        429,
        "retry-after: 7",
        "x-ratelimit-limit: 5",
        headers=(("retry-after", "7"), ("x-ratelimit-limit", "5")),
    ),
    "500": status(500, 502),
    "503": status(503, 502, "retry-after: 7", word="overloaded: ", headers=(("retry-after", "7"),)),
    "529": status(529, 502, word="overloaded: "),
    "redirect": status(302, 502, "location: http://127.0.0.1:1/"),
    "html 500": Fault(lambda asked: [said(500, HTML, "text/html")], words="Bad gateway"),
    "html 403": Fault(lambda asked: [said(403, HTML, "text/html")], 403, words="Bad gateway"),
    "html 200": Fault(lambda asked: [said(200, HTML, "text/html")], words="no JSON object"),
    "nothing": Fault(lambda asked: [said(200, b"")], words="no JSON object"),
    "a list": Fault(lambda asked: [said(200, b"[1]")], words="no JSON object"),
    "gzip 400": Fault(
        lambda asked: [said(400, gzip.compress(asked.error(400, "packed")), "application/json", GZIP)],
        400,
        words="packed",
    ),
    "gzip 500": Fault(
        lambda asked: [said(500, gzip.compress(asked.error(500, "packed")), "application/json", GZIP)],
        words="packed",
    ),
    "no gzip": Fault(
        lambda asked: [said(200, asked.whole, "application/json", GZIP)], words="cannot be read"
    ),
    "unknown encoding": Fault(
        lambda asked: [said(200, asked.whole, "application/json", "content-encoding: br")],
        words="cannot be read",
    ),
    "half a gzip": Fault(packed_badly, words="", breaks=True),
    "cut": Fault(lambda asked: broken(asked, CUT), words="broke off", breaks=True),
    "closed": Fault(broken, words="broke off", breaks=True),
    "stalls": Fault(lambda asked: broken(asked, LONG), 504, "timeout", "in time", breaks=True),
    "unfinished": Fault(unfinished, words="", breaks=True),
    "garbage": Fault(garbage, words="", breaks=True),
    "bad chunks": Fault(
        lambda asked: (
            [stream(*asked.events[:2], ends=False), PAUSE_S, b"zz\r\n"] if asked.stream else garbage(asked)
        ),
        words="",
        breaks=True,
    ),
    "no event": Fault(lambda asked: [stream() if asked.stream else said(200, b" ")], words="", breaks=True),
    "only comments": Fault(
        lambda asked: [stream(b": ping\n\n", b": ping\n\n") if asked.stream else said(200, b"\n")],
        words="",
        breaks=True,
    ),
    "error event": Fault(
        lambda asked: [
            in_error(asked) if asked.stream else said(500, asked.error(500, "the model stumbled"))
        ],
        breaks=True,
    ),
    "error in 200": Fault(lambda asked: [said(200, asked.error(500, "no credits"))], words="no credits"),
    "no answer": Fault(
        lambda asked: [only_its_end(asked) if asked.stream else said(200, b'{"choices": [], "a": {}}')],
        words="answer",
        breaks=True,
    ),
    "empty": Fault(
        lambda asked: [stream(*nothing_said(asked)) if asked.stream else said(200, EMPTY[asked.dialect])],
        words="no answer",
        breaks=True,
    ),
    "json for a stream": Fault(lambda asked: [said(200, asked.whole)], words="where a stream was asked for"),
    "a stream for json": Fault(lambda asked: [stream(*asked.events)], words="where none was asked for"),
}
KEPT = {"400", "401", "404", "413", "418", "422", "429", "html 403", "gzip 400"}
"""What the upstream says goes through as it is, where no bridge leads over it."""
SILENT = ("silent", "half a head", "stalls")
"""Those of whose upstream the daemon is impatient."""
CELLS = [
    (fault, dialect, asks, way)
    for fault in FAULTS
    for dialect in DIALECTS
    for asks in ("streamed", "buffered")
    for way in ("direct", "bridged")
    if (fault, asks) not in {("json for a stream", "buffered"), ("a stream for json", "streamed")}
]


def script(asked: Asked) -> Sequence[Step]:
    name = asked.model.partition(":")[2]
    if name != "well":
        return FAULTS[name].script(asked)
    return [stream(*asked.events) if asked.stream else said(200, asked.whole)]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("faults")
    with Wreck(script) as wreck, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        addresses = {
            "refused": f"http://127.0.0.1:{taken.getsockname()[1]}",
            "dns": "http://nowhere.invalid",
            "tls": wreck.url.replace("http:", "https:"),
            **dict.fromkeys(SILENT, wreck.url),
            "*": wreck.url,
        }
        rows = [
            f'[[upstream]]\nname = "{way} {name}"\nbase_url = "{url}"\nmodels = ["{way}:{name}"]\n'
            f"api = {json.dumps(api)}\nread_timeout_s = {SILENCE_S if name in SILENT else LONG}\n"
            for name, url in addresses.items()
            for way, api in (("direct", DIALECTS), ("chat", ["chat"]), ("messages", ["messages"]))
        ]
        (folder / "reef.toml").write_text("".join(rows))
        with running(folder) as started:
            yield started


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[httpx.Client]:
    with daemon.client() as opened:
        yield opened


def test_there_are_many_cells() -> None:
    assert len(CELLS) >= 60


@pytest.mark.parametrize(("name", "dialect", "asks", "way"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_a_fault(
    daemon: Daemon, client: httpx.Client, name: str, dialect: Dialect, asks: str, way: str
) -> None:
    fault, streamed = FAULTS[name], asks == "streamed"
    other = way if way == "direct" else "messages" if dialect == "chat" else "chat"
    answer = client.post(PATHS[dialect], json=body_of(dialect, stream=streamed, model=f"{other}:{name}"))
    in_stream = answer.headers["content-type"].startswith("text/event-stream")
    assert answer.status_code == (200 if fault.breaks and streamed else fault.status), answer.text
    assert "content-encoding" not in answer.headers
    for header, value in fault.headers:
        assert answer.headers[header] == value
    record = client.get(f"/reef/records/{answer.headers['x-reef-agent-record-id']}").json()
    assert (record["kind"], record["status"]) == ("turn", "failed")
    assert record["stream"] == in_stream == (fault.breaks and streamed)
    assert record["error"]["type"] == fault.error
    if not in_stream:
        assert fault.words in record["error"]["message"]
    told_of(answer, dialect, name, kept=name in KEPT and way == "direct")
    if in_stream and name in ("cut", "closed", "stalls") and way == "direct":
        sent = Asked(dialect, {"model": f"direct:{name}"}).events[:4]
        assert answer.content.startswith(b"".join(sent))
    well = client.post(PATHS[dialect], json=body_of(dialect, stream=streamed, model=f"{other}:well"))
    assert codec_for(dialect).parse(well.content, stream=streamed).text == "one two three"


def told_of(answer: httpx.Response, dialect: Dialect, name: str, *, kept: bool) -> None:
    """The failure is told as the client's own provider would."""
    codec = codec_for(dialect)
    if answer.headers["content-type"].startswith("text/event-stream"):
        events, rest = sse.split(answer.content)
        assert rest == b""
        marks = [codec.mark(event) for event in events]
        assert (marks.count(Mark.ERROR), marks[-1]) == (1, Mark.ERROR)
        assert Mark.TERMINAL not in marks
        word = b"the model stumbled" if name == "error event" else b"502 upstream overloaded"
        assert word in events[-1]
        return
    if kept and name == "html 403":
        assert answer.content == HTML
        return
    told = answer.json()
    assert told["error"]["message"]
    if dialect == "messages":
        assert (told["type"], isinstance(told["error"]["type"], str)) == ("error", True)
    if kept:
        assert answer.content == Asked(dialect, {}).error(*said_by(name))


def said_by(name: str) -> tuple[int, str]:
    """Status and message of the error that an upstream told of."""
    if name == "gzip 400":
        return 400, "packed"
    return int(name), "it is too much"
