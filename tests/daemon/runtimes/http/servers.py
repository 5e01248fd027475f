"""Servers that say exactly what they are told to, byte by byte."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from daemon.runtimes.http.client import Client

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""For `localhost` and `upstream.test`, with its key; trusted by nobody but who is told to."""
HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class Peer:
    """One connection, as the server has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> tuple[str, bytes]:
        """Head and body. Raises IncompleteReadError at the end of the connection."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = next(
            (int(line.partition(":")[2]) for line in head.split("\r\n") if line.startswith("content-length")),
            0,
        )
        return head, await self.reader.readexactly(length)

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def left(self) -> None:
        """Returns when the client has gone."""
        with suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


class Server:
    """`asked` are the heads of all requests; `peers` is how many connections there were."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.peers = 0
        self.gone = asyncio.Semaphore(0)
        """Released by each connection that is over."""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


Talk = Callable[[Peer, Server], Awaitable[None]]


@asynccontextmanager
async def serving(talk: Talk, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Runs `talk` for each connection and hangs up after it."""
    server = Server()
    running: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        server.peers += 1
        try:
            await talk(Peer(reader, writer), server)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            running.discard(task)
            writer.close()
            server.gone.release()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls, limit=2**20)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        for task in running:
            task.cancel()
        listening.close()
        await listening.wait_closed()
        while running:
            await asyncio.sleep(0)


def says(*answers: bytes) -> Talk:
    """Each request of a connection gets the next answer, then it hangs up."""

    async def talk(peer: Peer, server: Server) -> None:
        for answer in answers:
            server.asked.append((await peer.request())[0])
            await peer.say(answer)

    return talk


async def always(peer: Peer, server: Server) -> None:
    while True:
        server.asked.append((await peer.request())[0])
        await peer.say(HELLO)


@asynccontextmanager
async def client(
    url: str, *, patience: float = 20.0, connect: float = 5.0, reuse: bool = True
) -> AsyncIterator[Client]:
    made = Client(url, connect_timeout_s=connect, read_timeout_s=patience, reuse=reuse)
    try:
        async with asyncio.timeout(30):
            yield made
    finally:
        await made.close()


async def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def at(server: Server, host: str = "localhost") -> str:
    return f"https://{host}:{server.port}/v1"


async def hello(url: str, *, connect: float = 5.0) -> bytes:
    async with client(url, connect=connect) as http:
        return await (await http.ask("POST", "/x")).whole()


def tunnel_to(server: Server) -> Talk:
    async def talk(peer: Peer, proxy: Server) -> None:
        await says(b"HTTP/1.1 200 Connection established\r\n\r\n")(peer, proxy)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

        async def pass_on(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65536):
                    to.write(data)
                    await to.drain()
            except ConnectionError:
                pass
            finally:
                to.close()

        await asyncio.gather(pass_on(peer.reader, writer), pass_on(reader, peer.writer))

    return talk
