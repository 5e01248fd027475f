"""What to say to a request for a path that is not served, or not by its method, and that a client of a
provider may have asked for."""

import re
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


SCOPED = re.compile(r"(?:/s/([^/]+)(?:/r/([^/]+))?)?(?:/v1)(/.*)?")
"""The provider routes: scenario, run, and what follows `/v1`."""
_NEARLY = re.compile(r"(?:/s(?:/.*?)?)?/v1(/.*)?")
"""With a scenario or a run that is missing."""
_SLASHES = re.compile("/{2,}")


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


def stray(path: str) -> str | None:
    """What follows `/v1`, or should, in a path that is no route because the client's base URL is wrong; None
    where it is another path."""
    if dialect_of(path) is not None:
        return path
    found = _NEARLY.fullmatch(_SLASHES.sub("/", path))
    return None if found is None else found[1] or "/"


def stray_error(scope: Scope, after: str, headers: Mapping[str, str]) -> NotFound:
    """The error for a path of which `stray` made `after`."""
    asked, path = f"{scope['method']} {scope['path']}", scope["path"]
    if path == after:
        hint = "an OpenAI client's base URL ends in /v1, an Anthropic client's does not"
        return NotFound(f"no route {asked}", hint=hint)
    clean = _SLASHES.sub("/", path)
    if SCOPED.fullmatch(clean):
        return NotFound(f"{asked} has a slash too much", hint=_base_url(scope, clean, after, headers))
    return NotFound(
        f"{asked} names no scenario, or no run, where its name belongs",
        hint="before /v1 stands nothing, /s/SCENARIO or /s/SCENARIO/r/RUN: mend the client's base URL",
    )


def _base_url(scope: Scope, path: str, after: str, headers: Mapping[str, str]) -> str:
    """The hint with the base URL for a client that asked for `path`, which ends in `/v1` and `after`."""
    base = f"{scope['scheme']}://{headers.get('host', '')}{path.rstrip('/').removesuffix(f'/v1{after}')}"
    own = base if shape_of(after, headers) == "messages" else f"{base}/v1"
    return f"the client's base URL should be {own}"


def unknown_path(scope: Scope, path: str, headers: Mapping[str, str]) -> NotFound:
    """The error for a path (after `/v1`) that nobody serves. Where the base URL is at fault it names the
    right one."""
    method, plain = scope["method"], path.rstrip("/")
    for extra in _EXTRA:
        served = plain.removeprefix(extra)
        if served != plain and methods_of(served):
            base = scope["path"].rstrip("/").removesuffix(plain) + served
            wrong = "/v1 twice" if extra == "/v1" else f"{extra} too much"
            return NotFound(f"{method} /v1{path} has {wrong}", hint=_base_url(scope, base, served, headers))
    clean = _SLASHES.sub("/", plain)
    if clean != plain and methods_of(clean):
        base = scope["path"].rstrip("/").removesuffix(plain) + clean
        return NotFound(
            f"{method} /v1{path} has a slash too much", hint=_base_url(scope, base, clean, headers)
        )
    return NotFound(
        f"{method} /v1{path} is not served here",
        hint="check how it is spelt; what is not served is passed on, unrecorded, if `[reef] relay` lists it",
    )
