"""/reef/harness: the evolving harness as files."""

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from daemon.harness.adapters import adapters
from daemon.harness.render import render
from daemon.http.answers import Json
from daemon.http.rooms import named_scenario, rooms
from daemon.releases import catalog
from reef.errors import NotFound


async def harness(request: Request) -> Json:
    """The tree of a release, rendered for the scenario's adapter or the one named."""
    here = rooms(request)
    scenario = named_scenario(request)
    if here.recipe_of(scenario.name).surface == "weights":
        raise NotFound(f"scenario `{scenario.name}` serves no files", hint="it learns weights")
    query = request.query_params
    revision = query.get("release_id") or query.get("version") or "HEAD"

    def work(connection: Any) -> tuple[str, str, list[dict[str, Any]]]:
        found = catalog.resolve_revision(connection, scenario.name, revision)
        return *found, catalog.listing(connection, scenario.name)

    release_id, content_id, rows = await here.store.read(work)
    row = next(
        (row for row in reversed(rows) if release_id in (row["release_id"], row["candidate_id"])), None
    )
    tree = await here.scenarios.tree(content_id)
    rendered = render(tree, query.get("adapter") or scenario.section.adapter)
    entries = [
        {"id": entry.id, "name": entry.name, "config": dict(entry.config), "disabled": entry.disabled}
        for entry in tree.entries
    ]
    return Json(
        {
            "release_id": release_id,
            "artifact_version": release_id,
            "parent_release_id": row["parent_release_id"] if row else None,
            "content_id": content_id,
            "files": dict(rendered.files),
            "entries": entries,
            "skipped": [{"id": skipped.id, "why": skipped.why} for skipped in rendered.skipped],
            "evaluation": row["metrics"] if row else None,
            "requires": list(tree.requires),
        }
    )


async def listing(_request: Request) -> Json:
    return Json({"adapters": [descriptor.to_wire() for descriptor in adapters().values()]})


routes = [Route("/reef/harness", harness), Route("/reef/harness/adapters", listing)]
