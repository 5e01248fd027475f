"""Asking the upstreams of one exchange: the one it was meant for, then those that stand in for it."""

from collections.abc import Sequence
from dataclasses import replace

from daemon.runtimes.again import REPEATED, answered
from daemon.runtimes.router import Router
from daemon.serving.bridging import bridged
from daemon.serving.turn import Turn
from reef.errors import ReefError, TimedOut, Unavailable, UpstreamFailed
from reef.runtime import ProviderRequest, ProviderResponse, Runtime


async def ask(turn: Turn, router: Router, runtimes: Sequence[Runtime], body: bytes) -> ProviderResponse:
    """Ask the first runtime, and the next one where it fails before the first byte of its answer.

    The draft names the runtime asked last, and how each try before ended. Raises what that last one does.
    """
    *first, last = runtimes
    failed: ReefError | None = None
    for runtime in first:
        try:
            response = await runtime.send(_prepared(turn, router, runtime, body))
        except (UpstreamFailed, TimedOut, Unavailable) as error:
            failed = error
        except ReefError as error:  # it wants another key, or does not understand the request
            if failed is None:
                raise
            failed = error
        else:
            if response.status not in REPEATED:
                return response
            failed = UpstreamFailed(answered(runtime.name, response), status=response.status)
            await response.close()
        turn.draft.attempts.append(failed.message)
    try:
        return await last.send(_prepared(turn, router, last, body))
    except ReefError as error:
        if failed is None or isinstance(error, UpstreamFailed | TimedOut | Unavailable):
            raise
        # Nothing is wrong with the request: the one it was meant for failed, and this one is no help.
        raise UpstreamFailed(error.message, hint=error.hint, sent=False) from error


def _prepared(turn: Turn, router: Router, runtime: Runtime, body: bytes) -> ProviderRequest:
    """The request as this runtime gets it: the model by its name there, over a bridge if need be."""
    call, draft, facts = turn.call, turn.draft, turn.facts
    model = router.name_at(runtime, facts.model)
    if facts.model is None and model is not None:
        body = turn.codec.fill_model(body, model)
    elif model is not None and model != facts.model:
        body = turn.codec.set_model(body, model)
    turn.crossing, draft.bridged, draft.dropped, turn.sent = None, None, (), None
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
            on_sent=turn.leave,
        )
    own = bridged(turn, runtime, body)
    return replace(own, scenario=draft.scenario, attempts=draft.attempts, on_sent=turn.leave)
