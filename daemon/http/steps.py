"""/reef/steps: what growing did, and letting a step run."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from daemon.growth import steps
from daemon.http.rooms import int_param, known_scenario, rooms


async def listing(request: Request) -> JSONResponse:
    scenario = known_scenario(request)
    limit = int_param(request, "limit", 200)
    found = await rooms(request).store.read(lambda connection: steps.listing(connection, scenario, limit))
    return JSONResponse({"steps": found})


async def one(request: Request) -> JSONResponse:
    scenario, step = request.path_params["scenario"], request.path_params["step"]
    found = await rooms(request).store.read(lambda connection: steps.detail(connection, scenario, step))
    return JSONResponse(found)


async def run(request: Request) -> JSONResponse:
    here = rooms(request)
    scenario = here.scenarios.get(request.path_params["scenario"])
    step = request.path_params["step"]
    await here.review.run_again(scenario, step)
    here.growth.poke(scenario.name)
    return JSONResponse({"scenario": scenario.name, "step": step, "state": "queued"}, 202)


routes = [
    Route("/reef/steps", listing),
    Route("/reef/steps/{scenario}/{step:int}", one),
    Route("/reef/steps/{scenario}/{step:int}/run", run, methods=["POST"]),
]
