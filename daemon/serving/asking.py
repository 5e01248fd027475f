"""Asking the upstreams of one exchange: the one it was meant for, then those that stand in for it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from daemon.runtimes.again import REPEATED
from daemon.runtimes.replayed import once
from daemon.runtimes.router import Router
from daemon.serving.bridging import JSON, bridged, cannot_count
from daemon.serving.refusal import upstream_refused
from daemon.serving.thoughts import REFUSALS, Thoughts, may_be_refused, were_sent
from daemon.serving.turn import Turn
from daemon.wire.codec import codec_for
from daemon.wire.encoding import beginning
from daemon.wire.errors import said_in
from daemon.wire.values import dump, load_object
from reef.errors import ReefError, TimedOut, Unavailable, UpstreamFailed
from reef.runtime import ProviderRequest, ProviderResponse, Runtime

_WORDS_BYTES, _WORDS_S = 65536, 2.0
"""How much of a failure is read for what it says, and how long that may hold up whoever stands in."""
_FATE_CHARS = 300


async def ask(
    turn: Turn, router: Router, thoughts: Thoughts, runtimes: Sequence[Runtime], body: bytes
) -> ProviderResponse:
    """Ask the first runtime, and where it fails before the first byte of its answer, those that stand in.

    The draft names the runtime whose answer it is, and how each other try ended. When nobody can serve, the
    failure is the first one's: what is wrong with a stand-in is told in its words, and nothing else of it.

    Raises:
        ReefError: as the first one does; `Unavailable` where one that stands in is only loading.
    """
    first, *others = runtimes
    failed: ReefError | _Failure
    if not others:
        return await _sent(turn, router, thoughts, first, body)
    try:
        response = await _sent(turn, router, thoughts, first, body)
    except (UpstreamFailed, TimedOut, Unavailable) as error:
        failed, said = error, error.message
    else:
        if response.status not in REPEATED:
            return response
        failed = _Failure(response, await _words(response))
        said = failed.message(first.name)[:_FATE_CHARS]
    attempts, sent = turn.draft.attempts, turn.sent
    before = len(attempts)
    attempts.append(said)
    fates: list[str] = []
    loading: Unavailable | None = None
    for runtime in others:
        try:
            response = await _sent(turn, router, thoughts, runtime, body)
            if response.status < 300:
                return response
            words = await _words(response)
            if cannot_count(turn, response.status, words):
                return _replayed(response, words)
            where = response.header("location")
            said = upstream_refused(runtime.name, response.status, words, location=where).message
        except ReefError as error:  # it is away, wants another key, or does not understand the request
            said = error.message
            if isinstance(error, Unavailable):
                loading = loading or error
        fates.append(said[:_FATE_CHARS])
        attempts.append(fates[-1])
    del attempts[before]  # it is what the record tells of
    _prepared(turn, router, first, body, thinking=thoughts.go_to(first.name, turn))
    turn.sent = sent
    told = f" (standing in for it: {'; '.join(fates)})"
    if loading is not None:
        why = failed.message if isinstance(failed, ReefError) else failed.message(first.name)
        raise Unavailable(why + told, hint=loading.hint, retry_after_s=loading.retry_after_s)
    if isinstance(failed, ReefError):
        failed.message += told
        raise failed
    return failed.with_words(turn, told)


async def _sent(
    turn: Turn, router: Router, thoughts: Thoughts, runtime: Runtime, body: bytes
) -> ProviderResponse:
    """What the runtime answers. One that seems not to take back what models thought is asked once more
    without; where that helps it is sent no more of it."""
    thinking = thoughts.go_to(runtime.name, turn)
    response = await runtime.send(_prepared(turn, router, runtime, body, thinking=thinking))
    if response.status not in REFUSALS or not were_sent(turn):
        return response
    said = await _words(response)
    if not may_be_refused(said):
        return _replayed(response, said)
    attempts = turn.draft.attempts
    attempts.append(upstream_refused(runtime.name, response.status, said).message[:_FATE_CHARS])
    again = await runtime.send(_prepared(turn, router, runtime, body, thinking=False))
    if again.status < 400:
        thoughts.refused_by(runtime.name, turn)
        return again
    await again.close()
    attempts.pop()
    sent = turn.sent
    _prepared(turn, router, runtime, body)
    turn.sent = sent
    return _replayed(response, said)


class _Failure:
    """An error status that the first runtime answered with."""

    def __init__(self, response: ProviderResponse, body: bytes) -> None:
        self._response = response
        self._body = body

    def message(self, name: str) -> str:
        return upstream_refused(name, self._response.status, self._body).message

    def with_words(self, turn: Turn, more: str) -> ProviderResponse:
        """The answer, as its provider shapes it, with more words in its message."""
        payload = load_object(self._body) or {}
        error = payload.get("error")
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            body = dump({**payload, "error": {**error, "message": error["message"] + more}})
        else:
            codec = codec_for(turn.crossing.upstream) if turn.crossing else turn.codec
            said = UpstreamFailed(said_in(self._body, otherwise="nothing more") + more)
            body = codec.error_body(said, self._response.status)
        return _replayed(self._response, body)


async def _words(response: ProviderResponse) -> bytes:
    """The beginning of an answer that says what went wrong, in plain bytes; the answer is closed then."""
    got = bytearray()
    try:
        with suppress(ReefError, TimeoutError):  # half of what it says is better than nothing
            async with asyncio.timeout(_WORDS_S):
                async for chunk in response.body:
                    got += chunk
                    if len(got) > _WORDS_BYTES:
                        break
    finally:
        await response.close()
    return beginning(bytes(got), response.header("content-encoding"), most=_WORDS_BYTES)


def _replayed(response: ProviderResponse, body: bytes) -> ProviderResponse:
    """An answer whose body was read already."""
    kept = [pair for pair in response.headers if pair[0] not in {"content-encoding", "content-type"}]
    return ProviderResponse(response.status, [*kept, JSON], once(body))


def _prepared(
    turn: Turn, router: Router, runtime: Runtime, body: bytes, *, thinking: bool = True
) -> ProviderRequest:
    """The request as this runtime gets it: the model by its name there, over a bridge if need be, with what
    models thought before if `thinking`."""
    call, draft, facts = turn.call, turn.draft, turn.facts
    model = router.name_at(runtime, facts.model)
    if facts.model is None and model is not None:
        body = turn.codec.fill_model(body, model)
    elif model is not None and model != facts.model:
        body = turn.codec.set_model(body, model)
    turn.crossing, draft.bridged, draft.dropped, turn.sent = None, None, [], None
    draft.upstream_name = runtime.name
    draft.model = facts.model or runtime.model
    draft.forwarded = None if body == call.body else body
    if runtime.speaks(call.dialect):
        return ProviderRequest(
            call.dialect,
            call.path,
            call.headers,
            body,
            facts.stream,
            scenario=draft.scenario,
            attempts=draft.attempts,
            dropped=draft.dropped,
            on_sent=turn.leave,
        )
    own = bridged(turn, runtime, body, thoughts=thinking)
    return replace(
        own,
        scenario=draft.scenario,
        attempts=draft.attempts,
        dropped=draft.dropped,
        on_sent=turn.leave,
    )
