"""/reef/scenarios: which there are, making one, its contract."""

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from daemon.http.answers import Json
from daemon.http.rooms import Rooms, json_body, object_with, rooms, text_field
from daemon.serving.scenarios import Scenario
from reef.errors import Invalid, Unsupported

_MODES = ("auto", "manual", "hybrid")


def to_wire(here: Rooms, scenario: Scenario) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "loaded": True,
        "release_id": scenario.head.release_id,
        "content_id": scenario.head.content_id,
        "adapter": scenario.section.adapter,
        "recipe": scenario.recipe,
        "processor": scenario.section.use,
        "surface": here.recipe_of(scenario.name).surface,
    }


async def listing(request: Request) -> Json:
    here = rooms(request)
    found = [to_wire(here, here.scenarios.get(name)) for name in here.scenarios.names()]
    if request.query_params.get("archived") in ("1", "true"):
        found += [_archived(name) for name in here.scenarios.archived()]
    return Json({"scenarios": found})


def _archived(name: str) -> dict[str, Any]:
    unknown = ("release_id", "content_id", "adapter", "recipe", "processor", "surface")
    return {"scenario": name, "loaded": False, "archived": True} | dict.fromkeys(unknown)


async def create(request: Request) -> Json:
    here = rooms(request)
    body = object_with(await json_body(request), "name", "release_id")
    name = text_field(body, "name")
    assert name is not None
    start = text_field(body, "release_id", required=False)
    scenario, new = await here.scenarios.create(name, start=start)
    if not new:
        await here.scenarios.serve(name, start=start)  # refuses another start than it had
    answer = {
        "scenario": scenario.name,
        "release_id": scenario.head.release_id,
        "content_id": scenario.head.content_id,
    }
    return Json(answer, 201 if new else 200)


async def show(request: Request) -> Json:
    here = rooms(request)
    return Json(to_wire(here, here.scenarios.get(request.path_params["scenario"])))


async def update(request: Request) -> Json:
    here = rooms(request)
    scenario = here.scenarios.get(request.path_params["scenario"])
    body = object_with(await json_body(request), "training_mode")
    mode = text_field(body, "training_mode")
    if mode not in _MODES:
        raise Invalid(f"`{mode}` is not a training mode", hint=f"one of {', '.join(_MODES)}")
    if here.recipe_of(scenario.name).surface == "none":
        raise Unsupported(
            f"scenario `{scenario.name}` only records, so it has no training mode",
            hint="give it a recipe that learns, in a [[scenario]] of the configuration",
        )
    await here.scenarios.set_training_mode(scenario.name, mode)
    here.growth.poke(scenario.name)
    return Json({"scenario": scenario.name, "training_mode": mode})


async def contract(request: Request) -> Json:
    here = rooms(request)
    scenario = here.scenarios.get(request.path_params["scenario"])
    surface = here.recipe_of(scenario.name).surface
    return Json(
        {
            "scenario": scenario.name,
            "recipe": scenario.recipe,
            "processor": scenario.section.use,
            "surface": surface,
            "training_mode": scenario.training_mode,
            "required_request_types": ["inference"] if surface == "none" else ["inference", "report"],
            "report_schema": None,
        }
    )


async def archive(request: Request) -> Json:
    here = rooms(request)
    scenario = here.scenarios.get(request.path_params["scenario"])
    await here.growth.leave(scenario.name)
    try:
        refs = await here.review.archive(scenario)
    finally:
        if scenario.name in here.scenarios.names():  # it could not be archived, so it grows on
            here.growth.watch(scenario)
    return Json({"scenario": scenario.name, "archived": list(refs)})


routes = [
    Route("/reef/scenarios", listing),
    Route("/reef/scenarios", create, methods=["POST"]),
    Route("/reef/scenarios/{scenario}", show),
    Route("/reef/scenarios/{scenario}", archive, methods=["DELETE"]),
    Route("/reef/scenarios/{scenario}/update", update, methods=["POST"]),
    Route("/reef/scenarios/{scenario}/contract", contract),
]
