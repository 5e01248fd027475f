"""What Reef itself asks a model: episodes, reflection, judges."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from daemon.records.draft import Draft, RecordKind
from daemon.runtimes.router import Router
from daemon.serving.keeper import Keeper
from daemon.serving.reading import read, read_whole
from daemon.serving.refusal import upstream_refused
from daemon.serving.served import Served
from daemon.wire.codec import codec_for
from reef.errors import ReefError
from reef.feedback import Message, Usage
from reef.ids import new_receipt, now
from reef.runtime import DIALECTS, Parsed, Price, ProviderRequest, Runtime


@dataclass(frozen=True, slots=True)
class Completed:
    """An answer to Reef. `receipt` is None where it was not recorded; `finish` in the dialect's own word."""

    text: str
    usage: Usage
    receipt: str | None
    finish: str | None


class OwnCalls:
    """Asks the router's own runtime, buffered."""

    def __init__(
        self, router: Router, keeper: Keeper, upstream_of: Callable[[str], str | None] = lambda _: None
    ) -> None:
        self._router = router
        self._upstream_of = upstream_of
        self._keeper = keeper

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        scenario: str,
        kind: RecordKind = "episode",
        served: Served | None = None,
        model: str | None = None,
        max_tokens: int = 1024,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
        seed: int | None = None,
        tags: Mapping[str, str] | None = None,
        record: bool = True,
        on_sent: Callable[[], None] | None = None,
        on_again: Callable[[bool], Awaitable[None]] | None = None,
        runtime: Runtime | None = None,
    ) -> Completed:
        """Ask for one answer. `served` stands in front of the messages and is what the record names; `model`
        None means the runtime's own; `messages` have the roles system, user and assistant, and text;
        `on_sent` and `on_again` as in `ProviderRequest`. With a `runtime` nothing is routed: it is asked, and
        `model` is its own name for it.

        Raises:
            UpstreamFailed: it could not be asked, refused, or said nothing that can be read.
            TimedOut: it did not answer in time.
            Unavailable: not now (loading), or the record could not be stored.
            Unsupported: no runtime has a model.
        """
        if runtime is None:
            runtime, model = self._router.own(model, self._upstream_of(scenario))
        if record and self._keeper.failing:
            await self._keeper.ready()
        dialect = next(dialect for dialect in DIALECTS if runtime.speaks(dialect))
        codec = codec_for(dialect)
        body = codec.ask(
            messages, model=model, max_tokens=max_tokens, temperature=temperature, schema=schema, seed=seed
        )
        sent = codec.inject(body, served.prefix) if served is not None and served.prefix else body
        draft = Draft(
            new_receipt(),
            scenario,
            now(),
            dialect,
            kind=kind,
            request=body,
            forwarded=sent if sent != body else None,
            tags=tags or {},
            run=(tags or {}).get("run"),
            session=(tags or {}).get("session"),
            release_id=served.release_id if served else None,
            content_id=served.content_id if served else None,
            model=model,
            upstream_name=runtime.name,
        )
        began = perf_counter()
        left: float | None = None

        def leave() -> None:
            nonlocal left
            left = perf_counter()
            if on_sent is not None:
                on_sent()

        error: ReefError | None = None
        parsed = Parsed(None)
        try:
            request = ProviderRequest(
                dialect,
                codec.path,
                (),
                sent,
                scenario=scenario,
                attempts=draft.attempts,
                on_sent=leave,
                on_again=on_again,
            )
            await _send(runtime, request, draft)
            parsed = read(codec, draft, draft.response)
        except ReefError as failure:
            error = failure
            draft.status = "failed"
            draft.error_type, draft.error_message = failure.type, failure.message
        ended = perf_counter()
        draft.upstream_ms = None if left is None else (ended - left) * 1000
        draft.total_ms = (ended - began) * 1000
        stored = record and await self._keeper.keep(draft)
        if error is not None:
            raise error
        price = self._router.price(runtime.name, model, parsed.model)
        return Completed(parsed.text, _usage(parsed, price), draft.id if stored else None, parsed.finish)


async def _send(runtime: Runtime, request: ProviderRequest, draft: Draft) -> None:
    """Read a buffered answer into the draft. Raises UpstreamFailed when it is an error."""
    response = await runtime.send(request)
    draft.http_status = response.status
    draft.upstream_request_id = response.header("request-id") or response.header("x-request-id")
    draft.aliases = (draft.upstream_request_id,) if draft.upstream_request_id else ()
    draft.response = await read_whole(response, runtime.name)
    if not 200 <= response.status < 300:
        raise upstream_refused(runtime.name, response.status, draft.response)


def _usage(parsed: Parsed, price: Price | None) -> Usage:
    """Tokens as reported, and what they cost where a price and both counts are known."""
    cost = price.cost(parsed.billed) if price and parsed.billed else None
    return Usage(parsed.input_tokens, parsed.output_tokens, parsed.cached_tokens, cost)
