"""Answers in which something is refused, in the provider's own shape."""

from collections.abc import Sequence

from daemon.serving.call import Answer
from daemon.wire.codec import Codec
from daemon.wire.errors import said_in, status_of
from daemon.wire.headers import advice
from reef.errors import OverBudget, ReefError, Unavailable, Unsupported, UpstreamFailed
from reef.runtime import Header

KEPT_STATUS = frozenset({400, 401, 403, 404, 408, 409, 413, 422, 429})
"""Those of an upstream's 4xx that a client sees as they are; any other becomes 400."""


def refusal(error: ReefError, codec: Codec, *, advice_from: Sequence[Header] = ()) -> Answer:
    """The answer for an error; `advice_from` are an upstream's headers, of which those about coming back
    later are kept."""
    status = status_of(error)
    headers: list[Header] = [("content-type", "application/json"), *advice(advice_from)]
    if isinstance(error, Unavailable):
        headers.append(("retry-after", str(error.retry_after_s)))
    if isinstance(error, OverBudget | Unsupported):
        headers.append(("x-should-retry", "false"))  # SDKs take 429 and 501 for what passes in seconds
    return Answer(status, headers, codec.error_body(error, status))


def _place(location: str) -> str:
    """An address without what may be secret in it."""
    plain = location.partition("?")[0].partition("#")[0]
    scheme, slashes, rest = plain.rpartition("//")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}"[:300] if slashes else plain[:300]


def upstream_refused(
    upstream: str, status: int, body: bytes, *, location: str | None = None
) -> UpstreamFailed:
    """What an upstream that answered with an error status said; `location` is where it redirects to."""
    said = said_in(body, otherwise="nothing more")
    if 300 <= status < 400 and location:
        leads = f"it redirects to {_place(location)}"
        said = f"{said}; {leads}" if body.strip() else leads
    word = "overloaded: " if status in {503, 529} else ""
    hint = "check base_url of the upstream" if 300 <= status < 400 else "look at the upstream's own log"
    return UpstreamFailed(
        f"upstream `{upstream}` answered {status}: {word}{said}",
        hint=hint,
        status=status,
        body=body,
    )
