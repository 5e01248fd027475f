"""/reef/steps: what growing did, letting a step run, ending one."""

from starlette.requests import Request
from starlette.routing import Route

from daemon.growth import steps
from daemon.http.answers import Json
from daemon.http.rooms import int_param, known_scenario, rooms, step_param


async def listing(request: Request) -> Json:
    scenario = known_scenario(request)
    limit = int_param(request, "limit", 200, at_least=1, at_most=10_000)
    found = await rooms(request).store.read(lambda connection: steps.listing(connection, scenario, limit))
    return Json({"steps": found})


async def one(request: Request) -> Json:
    scenario, step = request.path_params["scenario"], step_param(request)
    found = await rooms(request).store.read(lambda connection: steps.detail(connection, scenario, step))
    return Json(found)


async def run(request: Request) -> Json:
    here = rooms(request)
    scenario = here.scenarios.get(request.path_params["scenario"])
    step = step_param(request)
    await here.review.run_again(scenario, step)
    here.growth.poke(scenario.name)
    return Json({"scenario": scenario.name, "step": step, "state": "queued"}, 202)


async def cancel(request: Request) -> Json:
    here = rooms(request)
    scenario = here.scenarios.get(request.path_params["scenario"])
    step = step_param(request)
    await here.review.cancel(scenario, step)
    here.growth.poke(scenario.name)
    return Json({"scenario": scenario.name, "step": step}, 202)


routes = [
    Route("/reef/steps", listing),
    Route("/reef/steps/{scenario}/{step:int}", one),
    Route("/reef/steps/{scenario}/{step:int}/run", run, methods=["POST"]),
    Route("/reef/steps/{scenario}/{step:int}/cancel", cancel, methods=["POST"]),
]
