"""llama-cpp-python in the child, behind a small HTTP server: chat completions and token counts.

One request at a time: a `Llama` is not thread-safe. What a client no longer waits for is broken off.
"""

import asyncio
import hmac
import re
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

_PASSED_ON = (
    *("messages", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "max_tokens", "logprobs"),
    *("top_logprobs", "presence_penalty", "frequency_penalty", "repeat_penalty", "logit_bias"),
)
_TEMPERATURE = 0.8  # llama.cpp's own default
_TOO_LONG = re.compile(r"Requested tokens \((\d+)\) exceed context window of (\d+)")
_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_ANY_OBJECT: dict[str, Any] = {"type": "object"}


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
        return _json({"status": "ok"})

    async def _models(self, request: Request) -> Response:
        return _json({"object": "list", "data": [{"id": self._config["name"], "object": "model"}]})

    async def _count(self, request: Request) -> Response:
        """Of Anthropic's messages: what the template makes of the system prompt and the texts."""
        try:
            asked = orjson.loads(await request.body())
            system = [{"role": "system", "content": asked["system"]}] if asked.get("system") else []
            prompt = self._format(messages=_plain([*system, *asked["messages"]])).prompt.encode()
            tokens = await self._work(partial(self._model.tokenize, prompt, special=True))
        except Exception as error:
            return _refused(error)
        return _json({"input_tokens": len(tokens)})

    async def _chat(self, request: Request) -> Response:
        try:
            asked = orjson.loads(await request.body())
            options = _options(asked)
            if asked.get("stream") is not True:
                return _json(await self._whole(request, options))
            with_usage = (asked.get("stream_options") or {}).get("include_usage") is True
            return await self._stream(options, with_usage)
        except Exception as error:
            return _refused(error)

    async def _whole(self, request: Request, options: dict[str, Any]) -> dict[str, Any]:
        async with self._turn:
            self._begin(options)
            watch = asyncio.create_task(self._notice(request))
            try:
                answer = await self._work(partial(self._model.create_chat_completion, **options))
            finally:
                watch.cancel()
            return {**answer, "model": self._config["name"], "usage": self._model.usage()}

    def _begin(self, options: dict[str, Any]) -> None:
        self._model.left.clear()
        self._model.most = options.get("max_tokens")

    async def _notice(self, request: Request) -> None:
        """Have the answer broken off when its client leaves."""
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self._model.left.set()

    async def _stream(self, options: dict[str, Any], with_usage: bool) -> Response:
        await self._turn.acquire()
        try:
            self._begin(options)
            chunks = await self._work(partial(self._model.create_chat_completion, **options, stream=True))
            first = await self._work(partial(next, chunks))
        except BaseException:
            self._turn.release()
            raise

        def done() -> None:
            self._worker.submit(chunks.close)
            self._turn.release()

        return _Stream(self._events(first, chunks, with_usage), done)

    async def _events(
        self, chunk: dict[str, Any] | None, chunks: Iterator[dict[str, Any]], with_usage: bool
    ) -> AsyncIterator[bytes]:
        named = {"model": self._config["name"]}
        last: dict[str, Any] = {}
        while chunk is not None:
            yield _event(_dump(chunk | named))
            last = chunk
            chunk = await self._work(partial(next, chunks, None))
        if with_usage:
            yield _event(_dump(last | named | {"choices": [], "usage": self._model.usage()}))
        yield _event(b"[DONE]")

    async def _work(self, call: Callable[[], Any]) -> Any:
        """Run in the one thread that may touch the model."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)


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


def _options(asked: dict[str, Any]) -> dict[str, Any]:
    """The request as the package takes it. Raises `ValueError` and the like for what is malformed."""
    options = {name: asked[name] for name in _PASSED_ON if asked.get(name) is not None}
    options.setdefault("temperature", _TEMPERATURE)
    options["messages"] = _plain(asked["messages"])
    if (most := asked.get("max_completion_tokens")) is not None:
        options["max_tokens"] = most
    wanted = asked.get("response_format") or {}
    if wanted.get("type") in ("json_schema", "json_object"):
        schema = (wanted.get("json_schema") or {}).get("schema") or wanted.get("schema") or _ANY_OBJECT
        options["grammar"] = _grammar(schema)
    return options


def _grammar(schema: dict[str, Any]) -> Any:
    try:
        return llama_cpp.LlamaGrammar.from_json_schema(_dump(schema).decode(), verbose=False)
    except Exception as error:
        raise ValueError(f"no grammar can be made of the schema: {error}") from error


def _plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With texts where a message has parts: templates take strings."""
    return [message | {"content": _text(message.get("content"))} for message in messages]


def _text(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    if other := next((part["type"] for part in content if part["type"] not in ("text", "input_text")), None):
        raise ValueError(f"this engine reads text only, and the request holds a part of type `{other}`")
    return "\n\n".join(part["text"] for part in content)


def _refused(error: Exception) -> Response:
    """In llama.cpp's own shape, which the daemon restates for its clients."""
    if found := _TOO_LONG.search(str(error)):
        told = {"type": "exceed_context_size_error", "n_prompt_tokens": int(found[1]), "n_ctx": int(found[2])}
        return _json({"error": {"code": 400, "message": "the prompt is too long", **told}}, 400)
    if isinstance(error, ValueError | KeyError | TypeError | AttributeError):
        why = f"the request lacks {error}" if isinstance(error, KeyError) else str(error)
        return _json({"error": {"code": 400, "type": "invalid_request_error", "message": why}}, 400)
    return _json({"error": {"code": 500, "type": "server_error", "message": str(error) or repr(error)}}, 500)


def _keyed(app: ASGIApp, key: str) -> ASGIApp:
    """Only for who has the key; its health is nobody's secret."""
    shown = f"Bearer {key}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers") or ()).get(b"authorization", b"")
        if scope["type"] == "http" and scope["path"] != "/health" and not hmac.compare_digest(given, shown):
            wrong = {"code": 401, "type": "authentication_error", "message": "wrong key"}
            await _json({"error": wrong}, 401)(scope, receive, send)
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


def _json(value: Any, status: int = 200) -> Response:
    return Response(_dump(value), status, media_type="application/json")


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"
