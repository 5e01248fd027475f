"""/reef/scenarios/{s}/releases and what decides on them."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from daemon.http.answers import Json
from daemon.http.rooms import json_body, named_scenario, object_with, rooms, text_field
from daemon.releases import catalog
from daemon.releases.history import Published
from daemon.serving.scenarios import Scenario
from reef.errors import NotFound


async def _rows(request: Request, scenario: Scenario) -> list[dict[str, Any]]:
    return await rooms(request).store.read(lambda connection: catalog.listing(connection, scenario.name))


async def releases(request: Request) -> Json:
    """Newest first. The older name `versions` answers the same, with a key of that name as well."""
    scenario = named_scenario(request)
    rows = (await _rows(request, scenario))[::-1]
    return _listing(request, scenario, rows)


async def harness_releases(request: Request) -> Json:
    """Oldest first."""
    scenario = named_scenario(request)
    return _listing(request, scenario, await _rows(request, scenario))


def _listing(request: Request, scenario: Scenario, rows: list[dict[str, Any]]) -> Json:
    answer: dict[str, Any] = {"scenario": scenario.name, "releases": rows}
    if request.url.path.endswith("/versions"):
        answer["versions"] = rows
    return Json(answer)


async def _revision(request: Request, scenario: Scenario, revision: str) -> tuple[str, str]:
    return await rooms(request).store.read(
        lambda connection: catalog.resolve_revision(connection, scenario.name, revision)
    )


async def rollback(request: Request) -> Json:
    scenario = named_scenario(request)
    body = object_with(await json_body(request), "release_id")
    wanted = text_field(body, "release_id")
    assert wanted is not None
    release_id, content_id = await _revision(request, scenario, wanted)
    return _published(await rooms(request).review.checkout(scenario, release_id, content_id))


async def promote(request: Request) -> Json:
    scenario = named_scenario(request)
    body = object_with(await json_body(request), "release_id")
    wanted = text_field(body, "release_id")
    assert wanted is not None
    candidate_id, _ = await _revision(request, scenario, wanted)
    return _published(await rooms(request).review.promote(scenario, candidate_id))


async def reject(request: Request) -> Json:
    scenario = named_scenario(request)
    body = object_with(await json_body(request), "release_id", "reason")
    wanted = text_field(body, "release_id")
    assert wanted is not None
    candidate_id, content_id = await _revision(request, scenario, wanted)
    reason = text_field(body, "reason", required=False) or ""
    await rooms(request).review.reject(scenario, candidate_id, reason)
    return Json({"scenario": scenario.name, "release_id": candidate_id, "content_id": content_id})


def _published(published: Published) -> Json:
    return Json(
        {
            "scenario": published.scenario,
            "release_id": published.release_id,
            "content_id": published.content_id,
        }
    )


async def diff(request: Request) -> PlainTextResponse:
    """What `to` (default HEAD) changes against `from` (default: its parent).

    A candidate that waits, against HEAD or nothing named: what promoting it would change now.
    """
    scenario = named_scenario(request)
    here = rooms(request)
    to_id, to_content = await _revision(request, scenario, request.query_params.get("to", "HEAD"))
    wanted = request.query_params.get("from")
    promoted = await here.review.preview(scenario, to_id) if wanted in (None, "HEAD") else None
    if promoted is not None:
        from_content: str | None = scenario.head.content_id
        to_content = promoted
    elif wanted is not None:
        from_content = (await _revision(request, scenario, wanted))[1]
    else:
        from_content = await _parent_content(request, scenario, to_id)
    text = await asyncio.to_thread(here.history.git.diff, from_content, to_content)
    return PlainTextResponse(text, media_type="text/x-diff")


async def _parent_content(request: Request, scenario: Scenario, release_id: str) -> str | None:
    for row in await _rows(request, scenario):
        if release_id in (row["release_id"] if row["published"] else None, row["candidate_id"]):
            parent = row["parent_release_id"]
            return (await _revision(request, scenario, parent))[1] if parent else None
    raise NotFound(f"no release `{release_id}`", hint="see `reef log --all`")


routes = [
    Route("/reef/scenarios/{scenario}/releases", releases),
    Route("/reef/scenarios/{scenario}/versions", releases),
    Route("/reef/harness/releases", harness_releases),
    Route("/reef/harness/versions", harness_releases),
    Route("/reef/scenarios/{scenario}/rollback", rollback, methods=["POST"]),
    Route("/reef/scenarios/{scenario}/promote", promote, methods=["POST"]),
    Route("/reef/scenarios/{scenario}/reject", reject, methods=["POST"]),
    Route("/reef/scenarios/{scenario}/diff", diff),
]
