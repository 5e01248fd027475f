"""llama-cpp-python in the child, behind a small HTTP server: chat completions and token counts.

One request at a time: a `Llama` is not thread-safe. What a client no longer waits for is broken off.
"""

import asyncio
import hmac
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import llama_cpp
import llama_cpp.llama_cpp as binding
import orjson
import uvicorn
from llama_cpp.llama_chat_format import Jinja2ChatFormatter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.runtimes.engine.llama_cpp_words import (
    TextOnly,
    dump,
    event,
    json_answer,
    options_of,
    plain,
    refused,
    uncounted,
)

_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class _BrokenOff(Exception):
    """Nobody waits for the answer any more."""


class _Model(llama_cpp.Llama):  # type: ignore[misc]  # mypy does not look into the package
    """Counts the tokens of the answer at hand, and stops between two of them once `left` is set. It ends an
    answer at `most` tokens and at the end of the window: the package does not while a character is cut."""

    asked = said = 0
    most: int | None = None

    def __init__(self, path: str, **options: Any) -> None:
        self.left = threading.Event()
        super().__init__(path, **options)

    def generate(self, tokens: Any, *words: Any, **options: Any) -> Iterator[int]:
        self.asked, self.said = len(tokens), 0
        most = min(self.n_ctx() - self.asked, self.most or self.n_ctx())
        for token in super().generate(tokens, *words, **options):
            if self.left.is_set():
                raise _BrokenOff
            self.said += 1
            yield token
            if self.said >= most:
                return

    def usage(self) -> dict[str, int]:
        whole = self.asked + self.said
        return {"prompt_tokens": self.asked, "completion_tokens": self.said, "total_tokens": whole}


class Server:
    """See `child.Server`."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._turn = asyncio.Lock()
        self._worker = ThreadPoolExecutor(max_workers=1)

    def serve(self, key: str) -> str:
        _without_extra_buffers()
        config = self._config
        threads = config["threads"]
        self._model = _Model(
            config["model_path"],
            n_ctx=config["context"],
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
        )
        self._format = Jinja2ChatFormatter(
            self._model.metadata.get("tokenizer.chat_template", _CHATML),
            eos_token=self._piece(self._model.token_eos()),
            bos_token=self._piece(self._model.token_bos()),
        )
        self._model.chat_handler = self._format.to_chat_handler()
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(_keyed(self._app(), key), log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("its HTTP server did not start")
            time.sleep(0.005)
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    def end(self) -> None:
        """Nothing outlives the process."""

    def _piece(self, token: int) -> str:
        said: bytes = self._model.detokenize([token], special=True) if token >= 0 else b""
        return said.decode(errors="replace")

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/health", self._health),
                Route("/v1/models", self._models),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count, methods=["POST"]),
            ]
        )

    async def _health(self, request: Request) -> Response:
        return json_answer({"status": "ok"})

    async def _models(self, request: Request) -> Response:
        return json_answer({"object": "list", "data": [{"id": self._config["name"], "object": "model"}]})

    async def _count(self, request: Request) -> Response:
        """Of Anthropic's messages: what the template makes of the system prompt and the texts. Calls, their
        results and images come in the words of another dialect, and tools in Reef's own: not counted here."""
        try:
            asked = orjson.loads(await request.body())
            if asked.get("tools"):
                return uncounted("this engine counts texts only, and the request has tools")
            system = [{"role": "system", "content": asked["system"]}] if asked.get("system") else []
            prompt = self._format(messages=plain([*system, *asked["messages"]])).prompt.encode()
            tokens = await self._work(partial(self._model.tokenize, prompt, special=True))
        except TextOnly as error:
            return uncounted(str(error))
        except Exception as error:
            return refused(error)
        return json_answer({"input_tokens": len(tokens)})

    async def _chat(self, request: Request) -> Response:
        try:
            asked = orjson.loads(await request.body())
            options = options_of(asked)
        except Exception as error:
            return refused(error)
        left = threading.Event()
        watch = asyncio.create_task(_notice(request, left))
        try:
            if asked.get("stream") is not True:
                return json_answer(await self._whole(options, left))
            with_usage = (asked.get("stream_options") or {}).get("include_usage") is True
            return await self._stream(options, with_usage, left)
        except Exception as error:
            return refused(error)
        finally:
            watch.cancel()

    async def _whole(self, options: dict[str, Any], left: threading.Event) -> dict[str, Any]:
        async with self._turn:
            answer = await self._work(partial(self._begin, options, left))
            return {**answer, "model": self._config["name"], "usage": self._model.usage()}

    def _begin(self, options: dict[str, Any], left: threading.Event, **more: Any) -> Any:
        """In the model's thread, where what went before has ended. The answer is broken off once its client
        has `left`, and does not begin where that was before its turn."""
        if left.is_set():
            raise _BrokenOff
        self._model.left, self._model.most = left, options.get("max_tokens")
        return self._model.create_chat_completion(**options, **more)

    async def _stream(self, options: dict[str, Any], with_usage: bool, left: threading.Event) -> Response:
        await self._turn.acquire()
        try:
            chunks = await self._work(partial(self._begin, options, left, stream=True))
            first = await self._work(partial(next, chunks, None))
        except BaseException:
            self._turn.release()
            raise

        def done() -> None:
            left.set()  # a chunk may be long in coming
            self._worker.submit(chunks.close)
            self._turn.release()

        return _Stream(self._events(first, chunks, with_usage), done)

    async def _events(
        self, chunk: dict[str, Any] | None, chunks: Iterator[dict[str, Any]], with_usage: bool
    ) -> AsyncIterator[bytes]:
        named = {"model": self._config["name"]}
        last: dict[str, Any] = {}
        while chunk is not None:
            yield event(dump(chunk | named))
            last = chunk
            chunk = await self._work(partial(next, chunks, None))
        if with_usage:
            yield event(dump(last | named | {"choices": [], "usage": self._model.usage()}))
        yield event(b"[DONE]")

    async def _work(self, call: Callable[[], Any]) -> Any:
        """Run in the one thread that may touch the model."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)


async def _notice(request: Request, left: threading.Event) -> None:
    """Sets `left` when the client leaves."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    left.set()


class _Stream(StreamingResponse):
    """`done` is called when it is over, however that is."""

    def __init__(self, body: AsyncIterator[bytes], done: Callable[[], None]) -> None:
        super().__init__(body, media_type="text/event-stream")
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._done()


def _keyed(app: ASGIApp, key: str) -> ASGIApp:
    """Only for who has the key; its health is nobody's secret."""
    shown = f"Bearer {key}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers") or ()).get(b"authorization", b"")
        if scope["type"] == "http" and scope["path"] != "/health" and not hmac.compare_digest(given, shown):
            wrong = {"code": 401, "type": "authentication_error", "message": "wrong key"}
            await json_answer({"error": wrong}, 401)(scope, receive, send)
            return
        await app(scope, receive, send)

    return guarded


def _without_extra_buffers() -> None:
    """llama.cpp's repacked weights crash on CPUs with AMX (ggml-org/llama.cpp#20824), and the package has no
    option for them."""
    defaults = binding.llama_model_default_params

    def without() -> Any:
        params = defaults()
        params.use_extra_bufts = False
        return params

    binding.llama_model_default_params = without
