"""A small, fast server of streams, by hand on uvloop: events at a steady pace, each with the time it left.

`python -m bench.proxy.streaming_upstream PORT`. Any POST is answered with a chat completions stream.
"""

import asyncio
import sys
import time

import uvloop

EVENTS = 16
PACE_S = 0.02
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_EVENT = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"s","choices":'
    b'[{"index":0,"delta":{"role":"assistant","content":"@%d@"},"finish_reason":null}]}\n\n'
)
_LAST = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"s","choices":'
    b'[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":16,'
    b'"total_tokens":25}}\n\n'
)
_DONE = b"data: [DONE]\n\n"


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


class _Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._buffer = bytearray()
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(buffer[:end]).lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(buffer) < end + 4 + length:
            return
        del buffer[: end + 4 + length]
        self._transport.write(_HEAD)
        self._next(0, self._loop.time())

    def _next(self, number: int, began: float) -> None:
        if self._transport.is_closing():
            return
        if number == EVENTS:
            self._transport.write(_chunk(_LAST) + _chunk(_DONE) + b"0\r\n\r\n")
            return
        self._transport.write(_chunk(_EVENT % time.monotonic_ns()))
        self._loop.call_at(began + (number + 1) * PACE_S, self._next, number + 1, began)


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
