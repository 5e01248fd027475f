"""Upstreams whose answers have odd heads: the client gets the answer, or is told what is wrong with it."""

from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.running import running
from tests.wreck import Asked, Wreck

ODD = b"caf\xe9 \x85\xa0\xff"
ANSWERED = {
    "content-length": (b"Content-Length : %(length)d", b"%(body)s"),
    "transfer-encoding": (b"Transfer-Encoding  : chunked", b"%(length)x\r\n%(body)s\r\n0\r\n\r\n"),
    "connection": (b"Connection : close, x-hop\r\nx-hop: 1\r\nContent-Length: %(length)d", b"%(body)s"),
    "no-name": (b"Content-Length x: 3\r\nContent-Length: %(length)d", b"%(body)s"),
    "trailer": (b"Transfer-Encoding: chunked", b"%(length)x\r\n%(body)s\r\n0\r\nx-late: 1\r\n\r\n"),
    "bytes": (b"x-odd: " + ODD + b"\r\nContent-Length: %(length)d", b"%(body)s"),
    "control": (b"x-odd: a\x01b\r\nContent-Length: %(length)d", b"%(body)s"),
    "upgrade": (b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: %(length)d", b"%(body)s"),
}
REFUSED = {
    "two": (b"Content-Length: %(length)d\r\nContent-Length: 1", "Duplicate Content-Length"),
    "twice": (b"Content-Length: %(length)d\r\nContent-Length: %(length)d", "Duplicate Content-Length"),
    "both": (b"Content-Length: %(length)d\r\nTransfer-Encoding: chunked", "Transfer-Encoding can't"),
}


def said(asked: Asked) -> list[bytes]:
    if asked.model == "101":
        return [b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"]
    refused = REFUSED.get(asked.model)
    head, framed = (refused[0], b"%(body)s") if refused else ANSWERED[asked.model]
    start = b"HTTP/1.1 200 tr\xe8s bien\r\nContent-Type: application/json\r\n"
    return [(start + head + b"\r\n\r\n" + framed) % {b"length": len(asked.whole), b"body": asked.whole}]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        Wreck(said) as wreck,
        running(tmp_path_factory.mktemp("odd"), "--upstream", wreck.url) as daemon,
        daemon.client() as client,
    ):
        yield client


def asked(client: httpx.Client, model: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    return client.post("/v1/chat/completions", json=body)


@pytest.mark.parametrize("name", ANSWERED)
def test_the_client_gets_its_answer(client: httpx.Client, name: str) -> None:
    answer = asked(client, name)
    assert (answer.status_code, answer.content) == (200, Asked("chat", {"model": name}).whole)
    record = client.get(f"/reef/records/{answer.headers['x-reef-agent-record-id']}").json()
    assert record["status"] == "complete"
    odd = [value for key, value in answer.headers.raw if key.lower() == b"x-odd"]
    assert odd == ([ODD] if name == "bytes" else [])
    assert "x-hop" not in answer.headers


@pytest.mark.parametrize("name", [*REFUSED, "101"])
def test_or_is_told_what_is_wrong_with_it(client: httpx.Client, name: str) -> None:
    answer = asked(client, name)
    error = answer.json()["error"]
    assert answer.status_code == 502
    assert (REFUSED[name][1] if name in REFUSED else "its status is 101") in error["message"]
    assert "base_url" not in error["hint"]
