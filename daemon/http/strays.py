"""What to say to a request for a path below `/v1` that is not served, or not by its method."""

from collections.abc import Mapping

from starlette.types import Scope

from daemon.serving.call import Answer
from daemon.serving.relay import ALWAYS
from daemon.wire.codec import PATHS, codec_for, dialect_of, shape_of
from reef.errors import Invalid, NotFound
from reef.runtime import Dialect

_MODELS = "/models"
_SERVED = (*PATHS, *ALWAYS, _MODELS)
_EXTRA = ("/v1", *_SERVED, *(f"{path}/v1" for path in _SERVED))
"""What stands too much before a path where a base URL is wrong."""


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
    for extra in _EXTRA:
        served = plain.removeprefix(extra)
        if served != plain and methods_of(served):
            before = scope["path"].rstrip("/").removesuffix(f"/v1{plain}")
            base = f"{scope['scheme']}://{headers.get('host', '')}{before}"
            own = base if shape_of(served, headers) == "messages" else f"{base}/v1"
            wrong = "/v1 twice" if extra == "/v1" else f"{extra} too much"
            return NotFound(f"{method} /v1{path} has {wrong}", hint=f"the client's base URL should be {own}")
    return NotFound(
        f"{method} /v1{path} is not served here",
        hint="check how it is spelt; what is not served is passed on, unrecorded, if `[reef] relay` lists it",
    )
