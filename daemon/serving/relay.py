"""Requests that are passed on and not recorded: embeddings, plain completions, and what the user lists."""

import asyncio
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from daemon.runtimes.router import Router
from daemon.serving.budgets import Budgets
from daemon.serving.call import Answer, Begin, Call, Write
from daemon.serving.reading import read_whole
from daemon.serving.refusal import KEPT_STATUS, upstream_refused
from daemon.wire.codec import codec_for
from daemon.wire.encoding import BROKEN, decoder, is_plain
from daemon.wire.errors import STOPPING, UPSTREAM_BROKE
from daemon.wire.headers import for_client
from daemon.wire.values import load_object, string
from reef.errors import ReefError, Unsupported
from reef.runtime import ProviderRequest, ProviderResponse

ALWAYS = frozenset({"/embeddings", "/completions"})
_NOT_MODIFIED = 304
"""The one status of its kind that sends nobody elsewhere, where Reef's token is none of their business."""


class Relay:
    """`patterns` are shell patterns of further paths, each after `/v1`; the rest as in `Exchange`."""

    def __init__(
        self,
        router: Router,
        upstream_of: Callable[[str], str | None],
        budgets: Budgets,
        patterns: Sequence[str] = (),
    ) -> None:
        self._router = router
        self._upstream_of = upstream_of
        self._budgets = budgets
        self._patterns = tuple(patterns)

    def takes(self, method: str, path: str) -> bool:
        """Whether this path (after `/v1`) is passed on."""
        if method == "POST" and path in ALWAYS:
            return True
        return ".." not in path and any(fnmatchcase(path, pattern) for pattern in self._patterns)

    async def answer(self, method: str, call: Call) -> Answer:
        """The upstream's own answer. The call's dialect is that of the provider that knows its path. What
        names no model goes to the scenario's upstream, else to the first that speaks that dialect.

        Raises:
            ReefError: there is no such upstream, it failed, or a hard budget is spent.
        """
        self._budgets.admit(call.scenario)
        body, shape = call.body, call.dialect
        model = string((load_object(body) or {}).get("model")) if body else None
        upstream = self._upstream_of(call.scenario)
        runtime = (
            self._router.pick(shape, model, upstream) if model else self._router.speaker(shape, upstream)
        )
        if not runtime.speaks(shape):
            raise Unsupported(f"upstream `{runtime.name}` has no {call.path}", hint="name another model")
        name = self._router.name_at(runtime, model)
        if model is not None and name is not None and name != model:
            body = codec_for(shape).set_model(body, name)
        dialect = shape if shape == "messages" else None
        request = ProviderRequest(
            dialect, call.path, call.headers, body, method=method, scenario=call.scenario
        )
        response = await runtime.send(request)
        own = for_client(response.headers)
        if response.status < 300 and (response.header("content-type") or "").startswith("text/event-stream"):
            return Answer(response.status, own, pump=_Pump(response, call))
        whole, status = await read_whole(response, runtime.name), response.status
        if status >= 500 or (300 <= status < 400 and status != _NOT_MODIFIED):
            raise upstream_refused(runtime.name, status, whole, location=response.header("location"))
        return Answer(status if status in KEPT_STATUS or status < 400 else 400, own, whole)


class _Pump:
    """Sends a stream on as it comes; one that breaks or is cut off ends with its dialect's error event."""

    def __init__(self, response: ProviderResponse, call: Call) -> None:
        self._response = response
        self._call = call

    async def __call__(self, begin: Begin, write: Write) -> None:
        encoding, codec = self._response.header("content-encoding") or "", codec_for(self._call.dialect)
        try:
            await begin()
            unpack = None if is_plain(encoding) else decoder(encoding)
            async for chunk in self._response.body:
                await write(unpack(chunk) if unpack else chunk)
        except (ReefError, *BROKEN) as error:
            await write(codec.error_event(f"{UPSTREAM_BROKE}{error}"))
        except asyncio.CancelledError:
            if self._call.stopping:
                await write(codec.error_event(STOPPING))
            raise
        finally:
            await self._response.close()
