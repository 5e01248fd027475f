"""What an exchange does where its upstream lacks the client's dialect."""

from collections.abc import Sequence

from daemon.serving.turn import Turn
from daemon.wire.bridge import estimate
from daemon.wire.bridge.crossing import bridged_to, cross
from daemon.wire.values import load_object, load_request, mapping
from reef.errors import Unsupported
from reef.runtime import Header, ProviderRequest, Runtime

JSON: Header = ("content-type", "application/json")
EVENTS: Header = ("content-type", "text/event-stream")
ESTIMATE: Header = ("x-reef-estimate", "1")
"""Goes with an answer to `count_tokens` that nobody counted."""


def bridged(turn: Turn, runtime: Runtime, body: bytes, *, thoughts: bool = True) -> ProviderRequest:
    """The request in a dialect that the runtime speaks, with what models thought before where `thoughts` go
    along; the turn knows of the bridge from here on.

    Raises:
        Invalid: the request leans on what only its own provider could know.
        Unsupported: no bridge leads there.
    """
    call, draft = turn.call, turn.draft
    other = bridged_to(call.dialect, runtime.speaks)
    if other is None:
        raise Unsupported(f"no bridge leads from `{call.dialect}` to `{runtime.name}`")
    payload = load_request(body, exact=True)
    crossing = turn.crossing = cross(call.dialect, other, payload, draft.id, thoughts=thoughts)
    draft.forwarded, draft.bridged, draft.dropped = crossing.body, other, list(crossing.dropped)
    headers = crossing.headers(call.headers)
    return ProviderRequest(other, crossing.path, headers, draft.forwarded, turn.facts.stream)


def cannot_count(turn: Turn, status: int, body: bytes) -> bool:
    """Whether an upstream cannot count: it knows no such path, or not how, and says so in its own words."""
    if turn.call.kind != "count_tokens" or status not in {404, 405, 501}:
        return False
    said = load_object(body) or {}
    return said.get("type") != "error" or not mapping(said.get("error"))


def count(turn: Turn) -> bytes:
    """An estimate in place of a count, taken as the answer."""
    body = estimate.counted(turn.facts.payload)
    if turn.draft.http_status is None:
        turn.draft.upstream_name = None  # nobody was asked
    turn.draft.http_status = 200
    turn.arrived = [body]
    return body


def typed(headers: Sequence[Header], kind: Header, turn: Turn) -> Sequence[Header]:
    """An answer's headers; what a bridge wrote is of the type `kind`."""
    if turn.crossing is None:
        return headers
    return [kind, *(pair for pair in headers if pair[0] != "content-type")]
