"""The client against real sockets: which connections it uses, repeats, gives back and leaves."""

import asyncio
import socket
import ssl
import threading

import pytest

from daemon.runtimes.http import client as client_module
from daemon.runtimes.http.client import Client
from daemon.runtimes.http.errors import BrokeOff, Closed, HttpError
from reef.errors import Invalid
from tests.daemon.runtimes.http.conftest import Run
from tests.daemon.runtimes.http.servers import HELLO, Peer, Server, always, client, says, serving, until


async def get(http: Client, method: str = "GET") -> bytes:
    answer = await http.ask(method, "/x")
    assert answer.status == 200
    return await answer.whole()


def test_a_connection_is_kept_for_the_next_request(run: Run) -> None:
    async def body() -> None:
        async with serving(always) as server, client(server.url) as http:
            for method in ("GET", "POST", "POST"):
                assert await get(http, method) == b"hello"
            assert server.peers == 1
            assert await asyncio.gather(*(get(http) for _ in range(4))) == [b"hello"] * 4
            assert server.peers == 4
            assert server.asked[0] == f"GET /v1/x HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n\r\n"
            assert "\r\ncontent-length: 0\r\n" in server.asked[1]

    run(body())


def test_an_answer_need_not_be_read_to_give_its_connection_back(run: Run) -> None:
    async def body() -> None:
        async with serving(always) as server, client(server.url) as http:
            first = await http.ask("GET", "/x")
            await until(lambda: first.over)
            assert await get(http) == b"hello"
            assert server.peers == 1
            assert await first.whole() == b"hello"
            first.close()
            assert await get(http) == b"hello"
            assert server.peers == 1

    run(body())


def test_without_reuse_each_request_has_its_own(run: Run) -> None:
    async def body() -> None:
        async with serving(always) as server, client(server.url, reuse=False) as http:
            assert [await get(http), await get(http)] == [b"hello"] * 2
            assert server.peers == 2
            assert "\r\nconnection: close\r\n" in server.asked[0]
            await server.gone.acquire()

    run(body())


@pytest.mark.parametrize("last", [b"", b"HTTP/1.1 408 Too Late\r\ncontent-length: 0\r\n\r\n"])
def test_one_that_the_server_closes_meanwhile_is_not_used(run: Run, last: bytes) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await says(HELLO)(peer, server)
        await closing.wait()
        await peer.say(last)
        if last:
            await peer.left()

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            assert await get(http, "POST") == b"hello"
            closing.set()
            await server.gone.acquire()
            await until(lambda: not http._idle)
            assert await get(http, "POST") == b"hello"
            assert server.peers == 2

    closing = asyncio.Event()
    run(body())


def test_one_that_nobody_needs_is_closed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with serving(always) as server, client(server.url) as http:
            assert await get(http) == b"hello"
            await server.gone.acquire()
            assert not http._idle
            assert await get(http) == b"hello"
            assert server.peers == 2

    monkeypatch.setattr(client_module, "IDLE_S", 0.02)
    run(body())


def test_each_is_kept_for_its_own_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with serving(always) as server, client(server.url) as http:
            await asyncio.gather(get(http), get(http))
            old, young = http._idle
            http._idle[old] -= client_module.IDLE_S - 0.01
            http._sweep()
            assert list(http._idle) == [old, young]
            await server.gone.acquire()
            assert list(http._idle) == [young]
            assert http._sweeper is not None
            assert http._sweeper.when() == pytest.approx(http._idle[young] + client_module.IDLE_S)

    run(body())


def test_one_that_is_too_old_is_not_used(run: Run) -> None:
    """Though nobody has closed it yet: a busy loop is late."""

    async def body() -> None:
        async with serving(always) as server, client(server.url) as http:
            await asyncio.gather(get(http), get(http))
            for connection in http._idle:
                http._idle[connection] -= client_module.IDLE_S
            assert await get(http, "POST") == b"hello"
            assert server.peers == 3
            assert len(http._idle) == 1

    run(body())


LATE = b"HTTP/1.1 408 Too Late\r\nConnection: Close\r\n\r\n"


@pytest.mark.parametrize(
    "last", [b"", LATE, b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstale"], ids=["end", "408", "200"]
)
def test_what_nobody_asked_for_is_nobodys_answer(run: Run, last: bytes) -> None:
    """A server gives an idle connection up while the loop is busy with something else."""

    def talk(listening: socket.socket) -> None:
        for number in range(2):
            peer, _ = listening.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(HELLO)
                if number == 0:
                    answered.wait(20)
                    peer.sendall(last)
            given_up.set()

    async def body(port: int) -> None:
        async with client(f"http://127.0.0.1:{port}/v1") as http:
            assert await get(http, "POST") == b"hello"
            assert len(http._idle) == 1
            answered.set()
            given_up.wait(20)  # and so does the loop
            assert await get(http, "POST") == b"hello"

    answered, given_up = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        server = threading.Thread(target=talk, args=(listening,))
        server.start()
        try:
            run(body(listening.getsockname()[1]))
        finally:
            answered.set()
            server.join(20)


@pytest.mark.parametrize(
    ("said", "status", "peers"),
    [
        (LATE, 200, 2),
        (b"HTTP/1.0 408 Too Late\r\nconnection: close\r\n\r\n", 200, 2),
        (b"HTTP/1.1 408 Too Late\r\ncontent-length: 0\r\n\r\n", 408, 1),
        (b"HTTP/1.1 503 No\r\nconnection: close\r\n\r\n", 503, 1),
    ],
    ids=["late", "1.0", "stays", "503"],
)
def test_a_request_that_met_the_end_of_its_connection_is_sent_again(
    run: Run, said: bytes, status: int, peers: int
) -> None:
    """Whatever it is: its server says that none came in time. On a new connection that is believed."""

    async def talk(peer: Peer, server: Server) -> None:
        await says(HELLO, said)(peer, server) if server.peers == 1 else await says(HELLO)(peer, server)

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            assert await get(http, "POST") == b"hello"
            assert (await http.ask("POST", "/x")).status == status
            assert server.peers == peers
        async with serving(says(said)) as server, client(server.url) as http:
            assert (await http.ask("POST", "/x")).status == int(said.split()[1])
            assert server.peers == 1

    run(body())


def test_a_late_answer_of_a_server_that_worked_on_it_stands(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "AT_ONCE_S", 0.02)

    async def talk(peer: Peer, server: Server) -> None:
        await says(HELLO)(peer, server)
        await peer.request()
        await asyncio.sleep(0.1)
        await peer.say(LATE)

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            assert await get(http, "POST") == b"hello"
            assert (await http.ask("POST", "/x")).status == 408
            assert server.peers == 1

    run(body())


@pytest.mark.parametrize(
    ("method", "says_first", "late", "repeated"),
    [
        ("GET", b"", False, True),
        ("DELETE", b"HTTP/1.1 2", True, True),
        ("POST", b"", False, True),
        ("POST", b"", True, False),
        ("POST", b"HTTP/1.1 2", False, False),
    ],
)
def test_what_may_be_repeated_is_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, method: str, says_first: bytes, late: bool, repeated: bool
) -> None:
    """Where a server hangs up instead of answering on a kept connection. A POST may have cost money, unless
    the connection was over before it came."""
    monkeypatch.setattr(client_module, "AT_ONCE_S", 0.02 if late else 30.0)

    async def talk(peer: Peer, server: Server) -> None:
        server.asked.append((await peer.request())[0])
        await peer.say(HELLO)
        if server.peers == 1:
            server.asked.append((await peer.request())[0])
            await peer.say(says_first)
            await asyncio.sleep(0.1 if late else 0)

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            assert await get(http, method) == b"hello"
            if repeated:
                assert await get(http, method) == b"hello"
                assert (server.peers, len(server.asked)) == (2, 3)
                return
            with pytest.raises(BrokeOff):
                await get(http, method)
            assert (server.peers, len(server.asked)) == (1, 2)

    run(body())


def test_a_request_that_breaks_a_new_connection_is_not_repeated(run: Run) -> None:
    async def body() -> None:
        async with serving(says()) as server, client(server.url) as http:
            with pytest.raises(BrokeOff):
                await get(http, "POST")
            assert server.peers == 1

    run(body())


def test_what_breaks_twice_fails(run: Run) -> None:
    async def body() -> None:
        async with serving(says()) as server, client(server.url) as http:
            with pytest.raises(BrokeOff):
                await get(http)
            assert server.peers == 2

    run(body())


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/x", [("a", "b\r\nhost: evil")]),
        ("/x", [("a", "b\nc")]),
        ("/x", [("a\r\nb", "c")]),
        ("/x", [("a", "b\0")]),
        ("/x", [("a", "snow ☃")]),
        ("/x HTTP/1.1\r\nhost: evil", []),
        ("/x y", []),
        ("/x\ty", []),
        ("/☃", []),
    ],
)
def test_no_header_makes_another_request_of_it(path: str, headers: list[tuple[str, str]]) -> None:
    async def body() -> None:
        async with serving(always) as server, client(server.url) as http:
            with pytest.raises(Invalid):
                await http.ask("GET", path, headers)
            assert server.peers == 0

    asyncio.run(body())


def test_headers_go_out_as_they_are() -> None:
    async def body() -> None:
        async with serving(always) as server, client(server.url + "/a b%2F") as http:
            await http.ask("GET", "/x?a=%2F&b=\xfc", [("a", " b"), ("a", "\xfc")])
            assert server.asked[0].startswith("GET /v1/a%20b%2F/x?a=%2F&b=\xfc HTTP/1.1\r\n")
            assert server.asked[0].endswith("\r\na:  b\r\na: \xfc\r\n\r\n")

    asyncio.run(body())


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"], ids=["head", "body"]
)
def test_who_is_called_off_leaves_nothing(run: Run, head: bytes) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await says(head)(peer, server)
        await peer.left()

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            asking = asyncio.create_task(get(http))
            await until(lambda: bool(server.asked))
            await until(lambda: any(c._answer is not None and c._answer._waiter for c in http._open))
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await server.gone.acquire()
            await until(lambda: not http._open)

    run(body())


async def says_half(peer: Peer, server: Server) -> None:
    """Half an answer, and nothing more until the client has gone."""
    await says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")(peer, server)
    await peer.left()


def test_an_answer_that_is_closed_early_breaks_off(run: Run) -> None:
    async def body() -> None:
        async with serving(says_half) as server, client(server.url) as http:
            answer = await http.ask("POST", "/x")
            assert await anext(answer) == b"half"
            answer.close()
            answer.close()
            await server.gone.acquire()
            with pytest.raises(BrokeOff):
                await anext(answer)

    run(body())


def test_closing_ends_all_that_is_under_way(run: Run) -> None:
    async def body() -> None:
        async with serving(says_half) as server, client(server.url) as http:
            answer = await http.ask("POST", "/x")
            reading = asyncio.create_task(answer.whole())
            await until(lambda: answer._waiter is not None)
            await http.close()
            with pytest.raises(HttpError):
                await reading
            with pytest.raises(HttpError):
                await http.ask("GET", "/x")
            assert server.peers == 1

    run(body())


def test_nothing_is_sent_once_it_is_closed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it was asked before: the certificates are read in a thread."""

    def slowly() -> ssl.SSLContext:
        loading.set()
        loaded.wait(20)
        return ssl.create_default_context()

    async def body() -> None:
        async with serving(always) as server, client(f"https://127.0.0.1:{server.port}/v1") as http:
            asking = asyncio.create_task(http.ask("POST", "/x"))
            await until(loading.is_set)
            await http.close()
            loaded.set()
            with pytest.raises(Closed):
                await asking
            assert server.peers == 0

    loading, loaded = threading.Event(), threading.Event()
    monkeypatch.setattr(client_module, "trusted", slowly)
    run(body())
