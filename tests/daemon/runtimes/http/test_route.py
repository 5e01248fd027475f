"""The way to a server: names, and the proxies of the environment."""

import asyncio
import socket
import time

import pytest

from daemon.runtimes.http import dialing
from daemon.runtimes.http.errors import (
    NoHost,
    ProxyFailed,
    TlsFailed,
    Unreachable,
)
from daemon.runtimes.http.route import route_to
from tests.daemon.runtimes.http.conftest import Run
from tests.daemon.runtimes.http.servers import (
    always,
    client,
    hello,
    says,
    serving,
    tls,
    tunnel_to,
)


@pytest.mark.parametrize(
    ("url", "header", "prefix"),
    [
        ("http://h:80/v1", "h", "/v1"),
        ("https://h/v1", "h", "/v1"),
        ("https://h:80/v1", "h:80", "/v1"),
        ("http://[::1]:5/v1", "[::1]:5", "/v1"),
        ("http://bücher.example/ü", "xn--bcher-kva.example", "/%C3%BC"),
    ],
)
def test_what_a_request_says_of_its_server(url: str, header: str, prefix: str) -> None:
    route = route_to(url)
    assert (route.fixed, route.prefix) == ([f"host: {header}"], prefix)


def test_nobody_there(run: Run) -> None:
    async def body() -> None:
        with socket.socket() as unheard:
            unheard.bind(("127.0.0.1", 0))
            port = unheard.getsockname()[1]
            with pytest.raises(Unreachable):
                await hello(f"http://127.0.0.1:{port}/v1")
        for host in ("nowhere.invalid", "a" * 70, "ü" * 70):
            with pytest.raises(NoHost):
                await hello(f"http://{host}/v1")

    run(body())


def test_the_address_that_answers_first_is_taken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says nothing has a head start; one that refuses is passed over at once."""

    async def body(*kinds: str) -> None:
        async with serving(always) as server:
            found = [address(kind, server.port) for kind in kinds]
            with await dialing._first(found) as connected:
                assert connected.getpeername()[1] == server.port

    def address(kind: str, port: int) -> dialing.Address:
        port = {"right": port, "refuses": refusing, "silent": 0}[kind]
        return (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))

    async def connected(to: dialing.Address) -> socket.socket:
        if to[4][1] == 0:
            await asyncio.Event().wait()
        return await really(to)

    really = dialing._connected
    monkeypatch.setattr(dialing, "_connected", connected)
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        refusing = unheard.getsockname()[1]
        began = time.monotonic()
        run(body("silent", "refuses", "right", "silent"))
        assert time.monotonic() - began >= dialing.HEAD_START_S


def test_a_proxy_is_asked_for_the_whole_address(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with serving(always) as proxy:
            monkeypatch.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{proxy.port}")
            assert await hello("http://upstream.test:81/v1") == b"hello"
            assert proxy.asked[0].startswith("POST http://upstream.test:81/v1/x HTTP/1.1\r\n")
            assert "\r\nhost: upstream.test:81\r\n" in proxy.asked[0]
            assert "\r\nproxy-authorization: Basic bWU6cEBzcw==\r\n" in proxy.asked[0]
            async with serving(always) as server:
                assert await hello(server.url) == b"hello"  # never for this machine
                monkeypatch.setenv("no_proxy", "upstream.test")
                with pytest.raises(NoHost):
                    await hello("http://upstream.test:81/v1")
            assert len(proxy.asked) == 1

    run(body())


def test_a_proxy_makes_a_tunnel(run: Run, monkeypatch: pytest.MonkeyPatch, trust: None) -> None:
    async def body() -> None:
        async with serving(always, tls=tls()) as server, serving(tunnel_to(server)) as proxy:
            monkeypatch.setenv("https_proxy", f"me:secret@127.0.0.1:{proxy.port}")
            async with client("https://upstream.test/v1") as http:
                for size in (0, 2**20):
                    answer = await http.ask("POST", "/x", (), b"x" * size)
                    assert await answer.whole() == b"hello"
            assert proxy.peers == server.peers == 1
            assert proxy.asked[0].startswith("CONNECT upstream.test:443 HTTP/1.1\r\n")
            assert "\r\nproxy-authorization: Basic bWU6c2VjcmV0\r\n" in proxy.asked[0]
            assert server.asked[0].startswith("POST /v1/x HTTP/1.1\r\nhost: upstream.test\r\n")
            assert "proxy" not in server.asked[0]
            with pytest.raises(TlsFailed, match="certificate is not trusted"):
                await hello("https://other.test/v1")
            await proxy.gone.acquire()

    run(body())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_fails(run: Run, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    async def body() -> None:
        url = f"{scheme}://upstream.test/v1"
        for proxy, why in (
            (f"http://127.0.0.1:{port}", None),
            ("http://nowhere.invalid", None),
            ("socks5://127.0.0.1:1", "only http"),
            ("http://127.0.0.1:x", "port"),
        ):
            monkeypatch.setenv(f"{scheme}_proxy", proxy)
            with pytest.raises(ProxyFailed, match=why):
                await hello(url)
        if scheme == "https":
            refusal = b"HTTP/1.1 407 Who Are You\r\ncontent-length: 3\r\n\r\nwho"
            for said, why in ((refusal, "407"), (b"", "ended"), (b"SSH\r\n", "HTTP")):
                async with serving(says(said)) as server:
                    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.port}")
                    with pytest.raises(ProxyFailed, match=why):
                        await hello(url)

    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        port = unheard.getsockname()[1]
        run(body())


def test_credentials_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:secret@proxy.test")
    route = route_to("http://upstream.test/v1")
    assert any("Basic bWU6c2VjcmV0" in line for line in route.fixed)
    assert "bWU6c2VjcmV0" not in repr(route)
