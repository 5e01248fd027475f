"""Bodies of every size and pace, both ways, and servers that say nothing."""

import asyncio
import hashlib

import pytest

from daemon.runtimes.http.errors import BrokeOff, NotHttp, ReadTimedOut
from daemon.runtimes.http.response import HIGH_WATER
from tests.daemon.runtimes.http.conftest import Run
from tests.daemon.runtimes.http.servers import HELLO, Peer, Server, client, says, serving, until

MUCH = 48 * 2**20
"""More than the buffers of two sockets hold."""
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def test_chunks_arrive_as_they_are_sent(run: Run) -> None:
    """The server sends the next one when the one before has been read here."""

    async def talk(peer: Peer, server: Server) -> None:
        await says(CHUNKED)(peer, server)
        for number in range(5):
            await peer.say(b"1\r\n%d\r\n" % number)
            await read.acquire()
        await peer.say(b"0\r\n\r\n")

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            got = []
            async for chunk in await http.ask("GET", "/x"):
                got.append(chunk)
                read.release()
            assert got == [b"0", b"1", b"2", b"3", b"4"]

    read = asyncio.Semaphore(0)
    run(body())


def test_an_answer_without_a_length_ends_with_its_connection(run: Run) -> None:
    async def body() -> None:
        async with serving(says(b"HTTP/1.1 200 OK\r\n\r\nall of it")) as server, client(server.url) as http:
            assert await (await http.ask("GET", "/x")).whole() == b"all of it"

    run(body())


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", False),
        (CHUNKED + b"4\r\nhalf\r\n", False),
        (CHUNKED + b"4\r\nhalf\r\nzz\r\n", True),
    ],
    ids=["length", "chunked", "malformed"],
)
def test_what_is_not_whole_breaks_off(run: Run, said: bytes, stays: bool) -> None:
    """The end wakes the reader; malformed bytes do before it."""

    async def talk(peer: Peer, server: Server) -> None:
        await says(said)(peer, server)
        if stays:
            await peer.left()

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            answer = await http.ask("GET", "/x")
            assert await anext(answer) == b"half"
            with pytest.raises(BrokeOff):
                await anext(answer)
            await server.gone.acquire()

    run(body())


def test_garbage_is_told_from_a_hang_up(run: Run) -> None:
    async def body() -> None:
        async with serving(says(b"SSH-2.0\r\n\r\n")) as server, client(server.url) as http:
            with pytest.raises(NotHttp):
                await http.ask("POST", "/x")
        async with serving(says(b"")) as server, client(server.url) as http:
            with pytest.raises(BrokeOff):
                await http.ask("POST", "/x")

    run(body())


def test_a_server_waits_until_its_answer_is_read(run: Run) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await says(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % MUCH)(peer, server)
        for _ in range(MUCH // 2**16):
            await peer.say(b"x" * 2**16)
        sent.set()

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            answer = await http.ask("GET", "/x")
            await until(lambda: answer.paused)
            assert answer._held <= 2 * HIGH_WATER
            assert not sent.is_set()
            sizes = [len(chunk) async for chunk in answer]
            assert sum(sizes) == MUCH

    sent = asyncio.Event()
    run(body())


def test_a_connection_goes_on_after_a_slow_reader(run: Run) -> None:
    """Though its server had to wait when the last of the body came."""

    async def body() -> None:
        large = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (HIGH_WATER + 1) + b"x" * (HIGH_WATER + 1)
        async with serving(says(large, HELLO)) as server, client(server.url) as http:
            answer = await http.ask("GET", "/x")
            await until(lambda: answer.over)
            assert answer.paused
            assert await (await http.ask("GET", "/x")).whole() == b"hello"
            assert len(await answer.whole()) == HIGH_WATER + 1
            assert server.peers == 1

    run(body())


@pytest.mark.parametrize("size", [0, 1, 2**16, 2**16 + 1, 2**18, 3 * 2**20 + 7])
def test_bodies_of_all_sizes_arrive_whole(run: Run, size: int) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        while True:
            got = (await peer.request())[1]
            await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 64\r\n\r\n")
            await peer.say(hashlib.sha256(got).hexdigest().encode())

    async def body() -> None:
        sent = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        async with serving(talk) as server, client(server.url) as http:
            told: list[None] = []
            for number in (1, 2):
                answer = await http.ask("POST", "/x", (), sent, on_sent=lambda: told.append(None))
                assert await answer.whole() == hashlib.sha256(sent).hexdigest().encode()
                assert len(told) == number
            assert server.peers == 1

    run(body())


def test_a_large_body_waits_for_its_server(run: Run) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await reads.wait()
        await says(HELLO)(peer, server)

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            asking = asyncio.create_task(http.ask("POST", "/x", (), b"x" * MUCH))
            await until(lambda: any(connection._full for connection in http._open))
            (connection,) = http._open
            assert connection.transport is not None
            assert connection.transport.get_write_buffer_size() <= 2**19
            reads.set()
            assert await (await asking).whole() == b"hello"

    reads = asyncio.Event()
    run(body())


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_may_come_before_the_request_is_over(run: Run, whole: bool) -> None:
    """One that refuses it is done; one that does not still gets all of the request."""

    async def talk(peer: Peer, server: Server) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        if whole:
            await peer.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
            await peer.left()
            return
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
        await peer.reader.readexactly(MUCH)
        await peer.say(b"ok")

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            answer = await http.ask("POST", "/x", (), b"x" * MUCH)
            assert answer.status == (413 if whole else 200)
            assert await answer.whole() == (b"no" if whole else b"ok")
            assert not http._idle
            await server.gone.acquire()
            await until(lambda: not http._open)

    run(body())


def test_a_server_that_hangs_up_on_a_large_body(run: Run) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            with pytest.raises(BrokeOff):
                await http.ask("POST", "/x", (), b"x" * MUCH)

    run(body())


@pytest.mark.parametrize("size", [0, MUCH], ids=["answer", "upload"])
def test_a_server_that_says_and_takes_nothing(run: Run, size: int) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await done.wait()

    async def body() -> None:
        async with serving(talk) as server, client(server.url, patience=0.1) as http:
            with pytest.raises(ReadTimedOut):
                await http.ask("POST", "/x", (), b"x" * size)
            assert not http._idle
            done.set()

    done = asyncio.Event()
    run(body())


def test_a_stall_in_the_middle(run: Run) -> None:
    async def talk(peer: Peer, server: Server) -> None:
        await says(HELLO, CHUNKED + b"4\r\nhalf\r\n")(peer, server)
        await peer.left()

    async def body() -> None:
        async with serving(talk) as server, client(server.url) as http:
            assert await (await http.ask("GET", "/x")).whole() == b"hello"
            answer = await http.ask("GET", "/x")
            assert await anext(answer) == b"half"
            (connection,) = http._open
            assert connection._timer is not None
            connection._timer.cancel()
            connection._patience = 0.1
            connection._look()
            with pytest.raises(ReadTimedOut):
                await anext(answer)
            assert server.peers == 1

    run(body())


def test_slow_is_not_silent(run: Run) -> None:
    """Neither a server that says little at a time, nor a reader who takes its time, is out of time."""

    async def talk(peer: Peer, server: Server) -> None:
        await peer.request()
        for byte in CHUNKED:
            await peer.say(bytes([byte]))
            await asyncio.sleep(0.025)
        await peer.say(b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n")

    async def body() -> None:
        async with serving(talk) as server, client(server.url, patience=1.0) as http:
            answer = await http.ask("GET", "/x")
            await asyncio.sleep(1.2)
            assert await answer.whole() == b"ab"

    run(body())
