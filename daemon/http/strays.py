"""What to say to a request for a path below `/v1` that is not served, or not by its method."""

from collections.abc import Mapping

from starlette.types import Scope

from daemon.serving.call import Answer
from daemon.serving.relay import ALWAYS
from daemon.wire.codec import codec_for, dialect_of
from reef.errors import Invalid, NotFound
from reef.runtime import Dialect

_MODELS = "/models"


def methods_of(path: str) -> tuple[str, ...]:
    """The methods by which a path (after `/v1`) is served; none where it is not."""
    if dialect_of(path) is not None or path in ALWAYS:
        return ("POST",)
    return ("GET", "HEAD") if path == _MODELS or path.startswith(f"{_MODELS}/") else ()


def wrong_method(method: str, path: str, allowed: tuple[str, ...], shape: Dialect) -> Answer:
    """`405` in the provider's own shape."""
    error = Invalid(f"{method} /v1{path} is not served", hint=f"send {' or '.join(allowed)}")
    headers = [("content-type", "application/json"), ("allow", ", ".join(allowed))]
    return Answer(405, headers, codec_for(shape).error_body(error, 405))


def unknown_path(scope: Scope, path: str, headers: Mapping[str, str]) -> NotFound:
    """The error for a path (after `/v1`) that nobody serves. Where the base URL is at fault it names the
    right one."""
    method, plain = scope["method"], path.rstrip("/")
    for at in [at for at, sign in enumerate(plain) if at and sign == "/"]:
        extra, served = plain[:at], plain[at:]
        if methods_of(served) and (extra == "/v1" or methods_of(extra)):
            before = scope["path"].rstrip("/").removesuffix(f"/v1{plain}")
            base = f"{scope['scheme']}://{headers.get('host', '')}{before}"
            own = base if _is_anthropics(served, headers) else f"{base}/v1"
            wrong = "/v1 twice" if extra == "/v1" else f"{extra} too much"
            return NotFound(f"{method} /v1{path} has {wrong}", hint=f"the client's base URL should be {own}")
    return NotFound(
        f"{method} /v1{path} is not served here",
        hint="check how it is spelt; what is not served is passed on, unrecorded, if `[reef] relay` lists it",
    )


def _is_anthropics(path: str, headers: Mapping[str, str]) -> bool:
    """Whether the client is one that appends `/v1` itself."""
    return dialect_of(path) == "messages" or "anthropic-version" in headers
