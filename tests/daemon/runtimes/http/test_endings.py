"""How an answer ends: by the server's word, by a connection that breaks, or because the client is closed."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

import pytest

from daemon.runtimes.http import client as client_module
from daemon.runtimes.http.client import Client
from daemon.runtimes.http.connection import Connection
from daemon.runtimes.http.errors import BrokeOff, Closed, Unreachable
from tests.daemon.runtimes.http.conftest import Run
from tests.daemon.runtimes.http.servers import (
    HELLO,
    Peer,
    Server,
    Talk,
    at,
    client,
    says,
    serving,
    tls,
    until,
)

MUCH = 48 * 2**20
"""More than the buffers of two sockets hold."""
UNFRAMED = b"HTTP/1.1 413 Too Large\r\nconnection: close\r\n\r\nlarge"
FRAMED = b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 5\r\n\r\nlarge"

both = pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture, trust: None) -> Iterator[None]:
    """The event loop has nothing to complain about."""
    yield
    assert not caplog.records


def served(talk: Talk, secure: bool) -> AbstractAsyncContextManager[Server]:
    return serving(talk, tls=tls() if secure else None)


def url(server: Server, secure: bool) -> str:
    return at(server) if secure else server.url


def half_close(peer: Peer) -> None:
    """No more comes from here; TLS is not told."""
    with socket.socket(fileno=os.dup(peer.writer.get_extra_info("socket").fileno())) as below:
        below.shutdown(socket.SHUT_WR)


@both
@pytest.mark.parametrize("head", [b"", b"content-length: 9\r\n"], ids=["unframed", "length"])
def test_closing_the_client_is_no_end_of_an_answer(run: Run, secure: bool, head: bytes) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await says(b"HTTP/1.1 200 OK\r\n%s\r\nhalf" % head)(peer, server)
        await peer.left()

    async def body() -> None:
        async with served(talk, secure) as server, client(url(server, secure)) as http:
            answer = await http.ask("POST", "/x")
            assert await anext(answer) == b"half"
            await http.close()
            with pytest.raises(BrokeOff):
                await anext(answer)

    run(body())


@both
@pytest.mark.parametrize("size", [0, 100, MUCH])
def test_an_answer_without_a_length_may_end_before_the_request_does(
    run: Run, secure: bool, size: int
) -> None:
    """Its server takes no more of the request, and stays."""

    async def talk(peer: Peer, server: Server) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.say(UNFRAMED)
        if secure:
            peer.writer.close()
        else:
            peer.writer.write_eof()
        await got.wait()

    async def body() -> None:
        async with served(talk, secure) as server, client(url(server, secure)) as http:
            answer = await http.ask("POST", "/x", (), b"x" * size)
            assert (answer.status, await answer.whole()) == (413, b"large")
            got.set()
            await until(lambda: not http._open)

    got = asyncio.Event()
    run(body())


@pytest.mark.parametrize("said", [UNFRAMED, FRAMED[:-1], FRAMED], ids=["unframed", "cut", "whole"])
def test_under_tls_only_the_server_ends_an_answer(run: Run, said: bytes) -> None:
    """Anybody can end the connection below. What has its length in its head needs no word of TLS."""

    async def talk(peer: Peer, server: Server) -> None:
        await says(said)(peer, server)
        await until(lambda: peer.writer.transport.get_write_buffer_size() == 0)
        half_close(peer)
        await peer.left()

    async def body() -> None:
        async with served(talk, True) as server, client(at(server)) as http:
            answer = await http.ask("POST", "/x")
            if said == FRAMED:
                assert await answer.whole() == b"large"
                return
            assert await anext(answer) in (b"large", b"larg")
            with pytest.raises(BrokeOff):
                await anext(answer)

    run(body())


def test_a_server_that_only_ends_its_side_is_not_waited_for(run: Run) -> None:
    """It may still take the request, but can never answer."""

    async def talk(peer: Peer, server: Server) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.writer.write_eof()
        await given_up.wait()

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            with pytest.raises(BrokeOff):
                await http.ask("POST", "/x", (), b"x" * MUCH)
            given_up.set()

    given_up = asyncio.Event()
    run(body())


@pytest.mark.parametrize("said", [FRAMED, FRAMED[:-1]], ids=["whole", "cut"])
def test_an_answer_is_read_though_the_connection_broke_under_the_upload(run: Run, said: bytes) -> None:
    """The server refuses it and hangs up with the request unread, which resets the connection: here a write
    notices that first."""

    def refuse(listening: socket.socket) -> None:
        peer, _ = listening.accept()
        with peer:
            peer.recv(10)
            peer.sendall(said)
        refused.set()

    async def body(port: int) -> None:
        async with client(f"http://127.0.0.1:{port}/v1") as http:
            answer = await http.ask("POST", "/x", (), b"x" * MUCH, on_sent=lambda: wait_for(refused))
            assert answer.status == 413
            if said == FRAMED:
                assert await answer.whole() == b"large"
                return
            assert await anext(answer) == b"larg"
            with pytest.raises(BrokeOff):
                await anext(answer)

    refused = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        server = threading.Thread(target=refuse, args=(listening,))
        server.start()
        try:
            run(body(listening.getsockname()[1]))
        finally:
            server.join(20)


def wait_for(event: threading.Event) -> None:
    assert event.wait(20)


@pytest.fixture
def after_dialling(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.Future[Connection]]:
    """Holds a connection that has just been opened until the second future is done; the first tells of it."""
    steps: list[asyncio.Future[Connection]] = []
    opened = client_module.open_to

    async def open_to(route: object, connection: Connection, *rest: object) -> None:
        await opened(route, connection, *rest)
        steps[0].set_result(connection)
        await steps[1]

    monkeypatch.setattr(client_module, "open_to", open_to)
    return steps


@both
def test_a_client_closed_before_a_request_left_says_so(
    run: Run, secure: bool, after_dialling: list[asyncio.Future[Connection]]
) -> None:
    async def body() -> None:
        after_dialling[:] = [asyncio.get_running_loop().create_future() for _ in range(2)]
        async with served(says(HELLO), secure) as server, client(url(server, secure)) as http:
            asking = asyncio.create_task(http.ask("POST", "/x"))
            await after_dialling[0]
            await http.close()
            after_dialling[1].set_result(after_dialling[0].result())
            with pytest.raises(Closed):
                await asking
            assert not server.asked

    run(body())


@both
def test_a_server_that_hangs_up_before_a_request_left_was_never_asked(
    run: Run, secure: bool, after_dialling: list[asyncio.Future[Connection]]
) -> None:
    async def body() -> None:
        after_dialling[:] = [asyncio.get_running_loop().create_future() for _ in range(2)]
        async with served(says(), secure) as server, client(url(server, secure)) as http:
            asking = asyncio.create_task(http.ask("POST", "/x"))
            connection = await after_dialling[0]
            await until(lambda: not connection.alive)
            after_dialling[1].set_result(connection)
            with pytest.raises(Unreachable):
                await asking

    run(body())


def test_a_client_closed_in_a_handshake_says_so(run: Run) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await peer.left()

    async def body() -> None:
        async with serving(talk) as server, client(at(server)) as http:
            asking = asyncio.create_task(http.ask("POST", "/x"))
            await until(lambda: server.peers == 1)
            await http.close()
            with pytest.raises(Closed):
                await asking

    run(body())


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_was_sent_is_not_said_to_be_unsent(run: Run, method: str) -> None:
    """A kept connection that the client itself ends is none that ended before the request came."""

    async def talk(peer: Peer, server: Server) -> None:
        await says(HELLO)(peer, server)
        server.asked.append((await peer.request())[0])
        await peer.left()

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            assert await (await http.ask(method, "/x")).whole() == b"hello"
            asking = asyncio.create_task(http.ask(method, "/x"))
            await until(lambda: len(server.asked) == 2)
            await http.close()
            with pytest.raises(BrokeOff):
                await asking

    run(body())


def test_the_last_answer_of_a_kept_connection(run: Run) -> None:
    last = HELLO.replace(b"200 OK", b"200 OK\r\nConnection : Close")

    async def body() -> None:
        async with serving(says(HELLO, last)) as server, client(server.url) as http:
            for peers in (1, 1, 2):
                assert await fetched(http) == b"hello"
                assert server.peers == peers

    run(body())


async def fetched(http: Client) -> bytes:
    return await (await http.ask("POST", "/x")).whole()
