"""/reef/report, /reef/reports and /reef/train: feedback and instructions in, verdicts out."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from daemon.http.answers import Json
from daemon.http.rooms import Rooms, json_body, known_scenario, named_scenario, rooms, scenario_header
from daemon.records.batches import report_listing
from daemon.records.intake import parse, parse_instruction
from reef.errors import ConfigError, Invalid

_STATES = ("pending", "eligible", "ineligible", "consumed")


async def report(request: Request) -> Json:
    here = rooms(request)
    intake = parse(await json_body(request))
    report_id, scenario = await here.observer.report(intake, scenario_header(request))
    answer: dict[str, Any] = {"agent_record_id": report_id, "scenario": scenario, "request_type": "report"}
    if intake.ignored:
        answer["ignored"] = list(intake.ignored)
    return Json(answer | await _hint(here, scenario))


async def _hint(here: Rooms, scenario: str) -> dict[str, Any]:
    """What is wrong with the tasks, if anything is. The report is stored by now, so nothing may fail."""
    if here.recipe_of(scenario).surface == "none":
        return {}
    try:
        await asyncio.to_thread(here.tasks_of, scenario)
    except ConfigError as error:
        return {"hint": f"the tasks cannot be read: {error.message}; {error.hint}"}
    return {}


async def train(request: Request) -> Json:
    here = rooms(request)
    instruction = parse_instruction(await json_body(request))
    scenario = named_scenario(request)
    instruction_id = await here.observer.instruct(instruction, scenario)
    answer = {"agent_record_id": instruction_id, "scenario": scenario.name, "request_type": "train"}
    return Json(answer | await _hint(here, scenario.name))


async def reports(request: Request) -> Json:
    query = request.query_params
    state = query.get("state")
    if state is not None and state not in _STATES:
        raise Invalid(f"`{state}` is not a state of a report", hint=f"one of {', '.join(_STATES)}")
    scenario = known_scenario(request)
    found = await rooms(request).store.read(
        lambda connection: report_listing(connection, scenario, state, query.get("agent_record_id"))
    )
    return Json({"reports": found})


routes = [
    Route("/reef/report", report, methods=["POST"]),
    Route("/reef/reports", reports),
    Route("/reef/train", train, methods=["POST"]),
    Route("/s/{scenario}/reef/report", report, methods=["POST"]),
]
