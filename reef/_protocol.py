"""The client's protocol without a socket: build a request, read an answer, raise what it says.

`Client` and `AsyncClient` differ only in how they move the bytes. Standard library only.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from reef.errors import (
    BY_TYPE,
    Conflict,
    DaemonUnreachable,
    Invalid,
    NotFound,
    ReefError,
    Refused,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unsupported,
    UpstreamFailed,
)
from reef.home import START_HINT, stale_url

JSON = dict[str, Any]
RECEIPT_HEADER = "x-reef-agent-record-id"
DEFAULT_TIMEOUT_S = 60.0
INFERENCE_TIMEOUT_S = 600.0

_BY_STATUS: dict[int, type[ReefError]] = {
    400: Invalid,
    401: Unauthorized,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    501: Unsupported,
    502: UpstreamFailed,
    503: Unavailable,
    504: TimedOut,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `path` starts with `/`; `body` is JSON or None; values of None in `query` are left out."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None

    @property
    def target(self) -> str:
        """Path and query as they stand in the request line."""
        given = {key: _word(value) for key, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(given)}" if given else self.path

    def content(self) -> bytes | None:
        return None if self.body is None else json.dumps(self.body, ensure_ascii=False).encode()

    def wire_headers(self, token: str | None) -> dict[str, str]:
        """Every header to send, lower-case."""
        found = {"accept": "application/json", **self.headers}
        if token:
            found["x-reef-token"] = token
        if self.body is not None:
            found["content-type"] = "application/json"
        return found


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """An inference: the provider's answer and the receipt to report with (None: it was not recorded)."""

    json: JSON
    receipt: str | None


def segment(name: str) -> str:
    """A name as one segment of a path.

    Raises:
        Invalid: it is empty, or one that paths give a meaning of their own.
    """
    if name in ("", ".", ".."):
        raise Invalid(f"`{name}` names nothing", hint="give the id or the name itself")
    return quote(name, safe="")


def read_json(answer: Answer) -> JSON:
    """The JSON object of a good answer.

    Raises:
        ReefError: of the class that the answer's `error.type` (else its status) names.
    """
    raise_for(answer)
    try:
        data = json.loads(answer.body)
    except ValueError as error:
        raise ReefError("the answer is not JSON", hint="is this address a Reef daemon?") from error
    if not isinstance(data, dict):
        raise ReefError("the answer is not a JSON object", hint="is this address a Reef daemon?")
    return data


def read_text(answer: Answer) -> str:
    """The text of a good answer. Raises as `read_json`."""
    raise_for(answer)
    return answer.body.decode("utf-8", "replace")


def read_reply(answer: Answer) -> Reply:
    """An inference answer with its receipt. Raises as `read_json`."""
    return Reply(read_json(answer), answer.headers.get(RECEIPT_HEADER))


def raise_for(answer: Answer) -> None:
    """Raise the error that the answer carries, in the shape of `/reef/*` or of a provider."""
    if answer.status < 400:
        return
    told = _told(answer.body)
    message = str(told.get("message") or f"the daemon answered {answer.status}")
    hint = str(told.get("hint") or "")
    if rule := told.get("rule"):
        raise Refused(str(rule), message, hint=hint)
    kind = BY_TYPE.get(str(told.get("type"))) or _BY_STATUS.get(answer.status, ReefError)
    if kind is UpstreamFailed:
        raise UpstreamFailed(message, hint=hint, status=answer.status, body=answer.body)
    if kind is Unavailable:
        raise Unavailable(message, hint=hint, retry_after_s=_retry_after(answer.headers.get("retry-after")))
    if kind is Unauthorized and os.environ.get("REEF_TOKEN"):
        hint = "REEF_TOKEN is not this daemon's token: unset it, and `reef token` prints the right one"
    elif kind is Unauthorized and not hint:
        hint = "set REEF_TOKEN to the daemon's token; `reef token` prints it in the daemon's home"
    raise kind(message, hint=hint)


def unreachable(url: str, reason: object) -> DaemonUnreachable:
    """The error for a connection that could not be made or broke."""
    named = os.environ.get("REEF_URL", "").rstrip("/") == url
    hint = f"REEF_URL names this address: unset it, or {START_HINT}" if named else START_HINT
    hint = stale_url(url) or hint
    return DaemonUnreachable(f"no Reef daemon answers at {url}\n{reason}", hint=hint)


def timed_out(call: Call, seconds: float) -> TimedOut:
    return TimedOut(f"{call.method} {call.path} took longer than {seconds:g} s", hint="see `reef logs`")


def _told(body: bytes) -> JSON:
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def _retry_after(value: str | None) -> int:
    return int(value) if value and value.isdigit() else 2


def _word(value: Any) -> str:
    return {True: "1", False: "0"}[value] if isinstance(value, bool) else str(value)
