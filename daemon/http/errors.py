"""Errors of the `/reef/*` routes: one JSON shape. Their statuses are the wire's."""

import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from daemon.http.answers import Json
from daemon.wire.codec import dialect_of
from daemon.wire.errors import sentence, status_of
from reef.errors import NotFound, ReefError, Refused, Unavailable

log = logging.getLogger("reef.http")


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
        problem: ReefError = NotFound(f"no route {request.method} {request.url.path}")
        if dialect_of(request.url.path) is not None:  # SDKs show nothing but the message
            hint = "an OpenAI client's base URL ends in /v1, an Anthropic client's does not"
            problem = NotFound(sentence(NotFound(problem.message, hint=hint)), hint=hint)
    else:
        problem = ReefError(f"{request.method} {request.url.path}: {error.detail}")
    return Json(error_content(problem), error.status_code, headers=error.headers)


async def on_bug(request: Request, error: Exception) -> Response:
    log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    problem = ReefError(f"the daemon failed: {error!r}", hint="this is a bug; see `reef logs`")
    return Json(error_content(problem), 500)


HANDLERS: dict[Any, Any] = {ReefError: on_reef_error, HTTPException: on_http_exception, Exception: on_bug}
