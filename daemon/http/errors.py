"""Errors of the `/reef/*` routes: one JSON shape. Their statuses are the wire's.

A path by which a provider's client missed the provider routes is told of in that provider's shape."""

import difflib
import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.http.answers import Json
from daemon.http.strays import stray, stray_error
from daemon.wire.codec import codec_for, shape_of
from daemon.wire.errors import status_of
from reef.errors import NotFound, ReefError, Refused, Unavailable

log = logging.getLogger("reef.http")

_PLACES = (
    "Reef's own routes are below /reef (GET /reef/status tells what runs), those for models below /v1; "
    "docs/reference/protocol.md has them all"
)


def error_headers(error: ReefError) -> Mapping[str, str]:
    return {"retry-after": str(error.retry_after_s)} if isinstance(error, Unavailable) else {}


def error_content(error: ReefError) -> dict[str, Any]:
    told = {"type": error.type, "message": error.message, "hint": error.hint}
    return {"error": told | ({"rule": error.rule} if isinstance(error, Refused) else {})}


async def on_reef_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ReefError)
    return Json(error_content(error), status_of(error), headers=error_headers(error))


async def on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        path: str = request.scope["path"]
        if (after := stray(path)) is not None:
            return _in_provider_shape(stray_error(request.scope, after, request.headers), after, request)
        problem: ReefError = NotFound(f"no route {request.method} {path}", hint=_nearest(request, path))
    else:
        send = f"send {' or '.join(_methods(request))}" if error.status_code == 405 else ""
        problem = ReefError(f"{request.method} {request.url.path}: {error.detail}", hint=send)
    return Json(error_content(problem), error.status_code, headers=error.headers)


def _nearest(request: Request, path: str) -> str:
    """What may have been meant by a path that is no route."""
    near = difflib.get_close_matches(path, [route.path for route in _routes(request)], n=1, cutoff=0.75)
    return f"did you mean {near[0]}?" if near else _PLACES


def _methods(request: Request) -> list[str]:
    """By which methods the path is served."""
    path = request.scope["path"]
    fitting = (route.methods or () for route in _routes(request) if route.path_regex.match(path))
    return sorted({method for methods in fitting for method in methods})


def _routes(request: Request) -> list[Route]:
    return [route for route in request.app.routes if isinstance(route, Route)]


def _in_provider_shape(problem: ReefError, after: str, request: Request) -> Response:
    status = status_of(problem)
    body = codec_for(shape_of(after, request.headers)).error_body(problem, status)
    return Response(body, status, media_type="application/json")


async def on_bug(request: Request, error: Exception) -> Response:
    log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    problem = ReefError(f"the daemon failed: {error!r}", hint="this is a bug; see `reef logs`")
    return Json(error_content(problem), 500)


HANDLERS: dict[Any, Any] = {ReefError: on_reef_error, HTTPException: on_http_exception, Exception: on_bug}
