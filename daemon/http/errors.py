"""Errors at the HTTP edge: one table of statuses, one JSON shape."""

import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from reef.errors import (
    Conflict,
    NotFound,
    ReefError,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unsupported,
    UpstreamFailed,
)

log = logging.getLogger("reef.http")

HTTP_STATUS: tuple[tuple[type[ReefError], int], ...] = (
    (Unauthorized, 401),
    (NotFound, 404),
    (Conflict, 409),
    (TooLarge, 413),
    (Unsupported, 501),
    (UpstreamFailed, 502),
    (Unavailable, 503),
    (TimedOut, 504),
    (ReefError, 400),
)
"""Specific first."""


def status_of(error: ReefError) -> int:
    return next(status for kind, status in HTTP_STATUS if isinstance(error, kind))


def error_headers(error: ReefError) -> Mapping[str, str]:
    return {"retry-after": str(error.retry_after_s)} if isinstance(error, Unavailable) else {}


def error_content(error: ReefError) -> dict[str, Any]:
    return {"error": {"type": error.type, "message": error.message, "hint": error.hint}}


async def on_reef_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ReefError)
    return JSONResponse(error_content(error), status_of(error), headers=error_headers(error))


async def on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        problem: ReefError = NotFound(f"no route {request.method} {request.url.path}")
    else:
        problem = ReefError(f"{request.method} {request.url.path}: {error.detail}")
    return JSONResponse(error_content(problem), error.status_code, headers=error.headers)


async def on_bug(request: Request, error: Exception) -> Response:
    log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    problem = ReefError(f"the daemon failed: {error!r}", hint="this is a bug; see `reef logs`")
    return JSONResponse(error_content(problem), 500)


HANDLERS: dict[Any, Any] = {ReefError: on_reef_error, HTTPException: on_http_exception, Exception: on_bug}
