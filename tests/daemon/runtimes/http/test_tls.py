"""Over TLS: who is trusted, and bodies that are read slowly."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from daemon.runtimes.http.errors import ConnectTimedOut, TlsFailed, Untrusted
from daemon.runtimes.http.response import HIGH_WATER
from tests.daemon.runtimes.http.conftest import Run
from tests.daemon.runtimes.http.servers import (
    CERTIFICATE,
    HELLO,
    Peer,
    Server,
    always,
    at,
    client,
    hello,
    says,
    serving,
    tls,
    tunnel_to,
    until,
)

MUCH = 64 * 2**20
"""More than the buffers of two sockets hold."""


def test_tls_with_a_certificate_of_the_environment(run: Run, trust: None) -> None:
    async def body() -> None:
        async with serving(always, tls=context) as server, client(at(server)) as http:
            for size in (0, 0, 3 * 2**20):
                answer = await http.ask("POST", "/x", (), b"x" * size)
                assert await answer.whole() == b"hello"
            assert server.peers == 1
            assert names == ["localhost"]

    names: list[str | None] = []
    context = tls()
    context.sni_callback = lambda _, name, __: names.append(name)
    run(body())


def test_what_is_not_trusted(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async def plain(peer: Peer, server: Server) -> None:
        await peer.say(HELLO)
        await peer.left()

    async def body() -> None:
        async with serving(always, tls=tls()) as server:
            monkeypatch.delenv("SSL_CERT_FILE", raising=False)
            with pytest.raises(Untrusted, match=r"certificate is not trusted: self.signed") as told:
                await hello(at(server))
            assert "SSL_CERT_FILE naming a file" in told.value.remedy
            monkeypatch.setenv("SSL_CERT_FILE", "/nonexist.pem")
            with pytest.raises(Untrusted, match=r"SSL_CERT_FILE names /nonexist\.pem, which is not there"):
                await hello(at(server))
            assert "SSL_CERT_FILE names /nonexist.pem, which is not there" in caplog.messages
            monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
            with pytest.raises(Untrusted, match="certificate is not trusted") as told:
                await hello(at(server, "127.0.0.1"))
            assert told.value.remedy.startswith("base_url must name the host")
            assert not server.asked
            monkeypatch.delenv("SSL_CERT_FILE")
            monkeypatch.setenv("SSL_CERT_DIR", os.pathsep.join(("/nonexist", str(tmp_path))))
            with pytest.raises(Untrusted, match=r"self.signed certificate$"):
                await hello(at(server))
            monkeypatch.setenv("SSL_CERT_DIR", "/nonexist")
            with pytest.raises(Untrusted, match="SSL_CERT_DIR names /nonexist, which is not there"):
                await hello(at(server))
        async with serving(plain) as server:
            with pytest.raises(TlsFailed):
                await hello(at(server))

    run(body())


@pytest.mark.parametrize("way", ["", "http", "https"])
def test_a_server_waits_until_its_answer_is_read(
    run: Run, trust: None, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Without a proxy, through a tunnel, and through one within TLS itself. It hangs up at the end."""

    async def talk(peer: Peer, server: Server) -> None:
        await says(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % MUCH)(peer, server)
        for _ in range(MUCH // 2**16):
            await peer.say(b"x" * 2**16)
        sent.set()

    async def body() -> None:
        async with (
            serving(talk, tls=tls()) as server,
            serving(tunnel_to(server), tls=tls() if way == "https" else None) as proxy,
        ):
            monkeypatch.setenv("https_proxy", f"{way}://localhost:{proxy.port}" if way else "")
            async with client("https://upstream.test/v1" if way else at(server)) as http:
                answer = await http.ask("GET", "/x")
                await until(lambda: answer.paused)
                assert answer._held <= 3 * HIGH_WATER
                assert not sent.is_set()
                assert sum([len(chunk) async for chunk in answer]) == MUCH
                assert proxy.peers == (1 if way else 0)

    sent = asyncio.Event()
    run(body())


@pytest.mark.parametrize("polite", [True, False])
def test_a_slow_reader_loses_nothing_when_a_server_hangs_up(run: Run, trust: None, polite: bool) -> None:
    """Also where it just ends the connection, without a word of TLS about it."""

    async def talk(peer: Peer, server: Server) -> None:
        await says(b"HTTP/1.1 200 OK\r\ncontent-length: 700000\r\n\r\n")(peer, server)
        for _ in range(7):
            await peer.say(b"x" * 100_000)
            await asyncio.sleep(0)
        await until(lambda: peer.writer.transport.get_write_buffer_size() == 0)
        if not polite:
            with socket.socket(fileno=os.dup(peer.writer.get_extra_info("socket").fileno())) as below:
                below.shutdown(socket.SHUT_WR)

    async def body() -> None:
        async with serving(talk, tls=tls()) as server, client(at(server)) as http:
            answer = await http.ask("GET", "/x")
            await server.gone.acquire()
            await until(lambda: answer.paused)
            for _ in range(100):  # whatever would notice the end has noticed it
                await asyncio.sleep(0)
            assert len(await answer.whole()) == 700_000

    run(body())


def test_a_connection_goes_on_after_a_slow_reader(run: Run, trust: None) -> None:
    async def body() -> None:
        size = HIGH_WATER + 1
        large = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size
        async with serving(says(large, HELLO), tls=tls()) as server, client(at(server)) as http:
            answer = await http.ask("GET", "/x")
            await until(lambda: answer.over)
            assert await (await http.ask("GET", "/x")).whole() == b"hello"
            assert len(await answer.whole()) == size
            assert server.peers == 1

    run(body())


def test_a_server_that_never_shakes_hands(run: Run) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await peer.left()

    async def body() -> None:
        async with serving(talk) as server:
            while not server.peers:  # it may be over before there is a connection
                with pytest.raises(ConnectTimedOut):
                    await hello(at(server), connect=0.1)
            await server.gone.acquire()
            async with client(at(server)) as http:
                asking = asyncio.create_task(http.ask("POST", "/x"))
                await until(lambda: server.peers == 2)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
                await server.gone.acquire()
                assert not http._open

    run(body())
