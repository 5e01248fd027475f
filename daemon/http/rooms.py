"""What the routes work with: the rooms that the composition root opened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson
from starlette.requests import Request

from daemon.events import EventBus
from daemon.growth.observer import Observer
from daemon.growth.review import Review
from daemon.growth.worker import Growth
from daemon.journal import Journal
from daemon.records.book import RecordBook
from daemon.releases.history import History
from daemon.runtimes.router import Router
from daemon.serving.exchange import Exchange
from daemon.serving.scenarios import Scenario, Scenarios
from daemon.settings.model import Settings
from daemon.store.store import Store
from reef.errors import Invalid, NotFound, TooLarge
from reef.ids import DEFAULT_SCENARIO
from reef.recipe import Recipe
from reef.tasks import Task

SCENARIO_HEADER = "x-reef-scenario"


@dataclass(slots=True)
class Rooms:
    """One per daemon; a route finds it with `rooms(request)`."""

    settings: Settings
    home: str
    url: str
    started_at: str
    why: str
    unconfigured: bool
    store: Store
    book: RecordBook
    history: History
    scenarios: Scenarios
    router: Router
    exchange: Exchange
    observer: Observer
    growth: Growth
    review: Review
    events: EventBus
    journal: Journal
    recipe_of: Callable[[str], Recipe]
    tasks_of: Callable[[str], Sequence[Task]]


def rooms(request: Request) -> Rooms:
    return cast(Rooms, request.app.state.rooms)


def scenario_header(request: Request) -> str | None:
    """What the header names, else the scoped base URL."""
    return request.headers.get(SCENARIO_HEADER) or request.path_params.get("scenario")


def named_scenario(request: Request) -> Scenario:
    """The existing scenario of a resource: its path, else the header, else the query. Raises `NotFound`."""
    given = request.path_params.get("scenario") or request.headers.get(SCENARIO_HEADER)
    return rooms(request).scenarios.get(given or request.query_params.get("scenario") or DEFAULT_SCENARIO)


def known_scenario(request: Request) -> str | None:
    """The existing scenario that the query names, if it names one. Raises `NotFound`."""
    name = request.query_params.get("scenario")
    return rooms(request).scenarios.get(name).name if name is not None else None


async def json_body(request: Request) -> Any:
    """The JSON body. Raises `Invalid`, or `TooLarge` above the limit."""
    limit = rooms(request).settings.reef.max_body_mb * 2**20
    chunks = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"the body is larger than {limit // 2**20} MiB", hint="raise [reef] max_body_mb")
        chunks.append(chunk)
    try:
        return orjson.loads(b"".join(chunks) or b"{}")
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: {error}", hint="send one JSON object") from error


def object_with(body: Any, *allowed: str) -> dict[str, Any]:
    """The body as an object that has no other keys."""
    if not isinstance(body, dict):
        raise Invalid("the body must be a JSON object", hint=f"its keys: {', '.join(allowed)}")
    if unknown := [key for key in body if key not in allowed]:
        raise Invalid(f"`{unknown[0]}` is not known here", hint=f"known: {', '.join(allowed)}")
    return body


def text_field(body: dict[str, Any], key: str, *, required: bool = True) -> str | None:
    value = body.get(key)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value:
        raise Invalid(f"`{key}` must be a string that is not empty", hint=f'send {{"{key}": "..."}}')
    return value


def int_param(request: Request, key: str, default: int, *, at_least: int = 0, at_most: int = 2**53) -> int:
    """A whole number of the query. Raises `Invalid` when it is none, or out of bounds."""
    text = request.query_params.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and at_least <= int(text) <= at_most):
        raise Invalid(
            f"`{key}` must be a whole number, not `{text[:40]}`", hint=f"use {at_least} to {at_most}"
        )
    return int(text)


def step_param(request: Request) -> int:
    """The step number of the path."""
    step = int(request.path_params["step"])
    if step > 2**53:
        raise NotFound(f"there is no step {str(step)[:40]}", hint="see `reef steps`")
    return step
