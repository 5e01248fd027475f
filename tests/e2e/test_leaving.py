"""A client that goes away: its upstream call is ended, or read to its end; the record says that it left."""

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS, body_of
from tests.e2e.running import TOKEN, Daemon, running, wait_for
from tests.stub_provider import StubProvider

WORDS = "one two three four five six"


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProvider]:
    with StubProvider() as provider:
        provider.event_delay_s = 0.12
        yield provider


@pytest.fixture(scope="module", params=["cancel", "drain"])
def daemon(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, stub: StubProvider
) -> Iterator[Daemon]:
    words = ("--upstream", stub.url, "--reef.on_client_gone", request.param)
    with running(tmp_path_factory.mktemp(request.param), *words) as started:
        yield started


def leave(daemon: Daemon, stub: StubProvider, dialect: Dialect, *, stream: bool) -> dict[str, Any]:
    """Ask, go away once the upstream has begun, and return the record."""
    asked = len(stub.asked)
    scenario = f"{dialect}-{stream}"
    body = json.dumps(body_of(dialect, WORDS, stream=stream)).encode()
    place = urlsplit(daemon.url)
    head = (
        f"POST /s/{scenario}{PATHS[dialect]} HTTP/1.1\r\nhost: {place.netloc}\r\n"
        f"authorization: Bearer {TOKEN}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((place.hostname, place.port)) as raw:
        raw.sendall(head.encode() + body)
        seen = b""
        while stream and b"one" not in seen:
            seen += raw.recv(4000)
        wait_for(lambda: len(stub.asked) > asked or None, "the upstream call")

    def newest() -> dict[str, Any] | None:
        if scenario not in daemon.get("/reef/status")["scenarios"]:
            return None
        rows = daemon.get("/reef/records", scenario=scenario)["records"]
        return daemon.get(f"/reef/records/{rows[0]['agent_record_id']}") if rows else None

    return wait_for(newest, "its record")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "buffered"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_that_leaves(daemon: Daemon, stub: StubProvider, dialect: Dialect, stream: bool) -> None:
    drains = "drain" in daemon.words
    stub.left.clear()
    stub.delay_s = 0.0 if stream else 1.0 if drains else 10.0
    record = leave(daemon, stub, dialect, stream=stream)
    assert (record["status"], record["kind"], record["error"]) == ("aborted", "turn", None)
    said = json.dumps(record["payload"].get("response"))
    if drains:
        assert WORDS in said
        assert record["usage"]["output_tokens"] == 7
        assert record["http_status"] == 200
        assert not stub.left.is_set()
    else:
        assert stub.left.wait(5)
        assert WORDS not in said
        assert ("one" in said) == stream
    stub.delay_s = 0.0
    assert daemon.ask("hi", scenario=f"{dialect}-after")[0] == "echo: hi"
