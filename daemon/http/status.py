"""/healthz and /reef/status."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.routing import Route

from daemon.growth import steps
from daemon.growth.budget import spent_today
from daemon.growth.observer import gate_hint
from daemon.growth.rooms import Progress
from daemon.http.answers import Json
from daemon.http.rooms import Rooms, rooms
from daemon.records.batches import counts, newest_record, ready_instructions, ready_reports
from daemon.releases import catalog
from daemon.serving.budgets import warnings
from daemon.serving.scenarios import Scenario
from daemon.settings.home import Home
from daemon.settings.load import find_config
from daemon.store.codec import load
from reef import __version__

COUNT_LIMIT = 1000


async def healthz(_request: Request) -> Json:
    return Json({"ok": True})


async def status(request: Request) -> Json:
    here = rooms(request)
    found = {}
    for name in here.scenarios.names():
        found[name] = await _scenario(here, here.scenarios.get(name))
    total = sum(scenario["counts"]["records"] for scenario in found.values())
    gone = None if here.store.is_there() else "the database is gone: was the home deleted?"
    here.store.gate.look_again()
    trouble = here.store.gate.trouble
    problem = gone or (trouble and trouble.message)
    remedy = "start anew: `reef down`, then `reef up`" if gone else trouble and trouble.hint
    return Json(
        {
            "version": __version__,
            "pid": os.getpid(),
            "home": here.home,
            "url": here.url,
            "started_at": here.started_at,
            "config_changed": config_changed(here),
            "warnings": warnings(here.settings),
            "error": {"message": problem, "hint": remedy, "at": None} if problem else None,
            "serving": {
                "why": here.why,
                "upstreams": [
                    {
                        "name": state.name,
                        "kind": state.kind,
                        "state": state.state,
                        "model": state.model,
                        "url": state.url,
                        "detail": state.detail,
                        "waiting": state.waiting,
                        **({"hint": state.hint} if state.hint else {}),
                    }
                    for state in here.router.states()
                ],
            },
            "budget": {
                "spent_usd": await here.store.read(spent_today),
                "usd_per_day": here.settings.growth.usd_per_day,
            },
            "storage": {
                "kind": here.store.kind,
                "bytes": here.store.size_bytes(),
                "records": total,
                "writable": problem is None,
            },
            "scenarios": found,
        }
        | gate_hint(here.unconfigured)
    )


def config_changed(here: Rooms) -> bool:
    """Whether the configuration file was written since this daemon read it."""
    source = here.settings.source
    if source is None:
        return find_config(None, Home(Path(here.home))) is not None
    try:
        return source.stat().st_mtime > datetime.fromisoformat(here.started_at).timestamp()
    except OSError:
        return True


async def _scenario(here: Rooms, scenario: Scenario) -> dict[str, Any]:
    recipe = here.recipe_of(scenario.name)
    section = scenario.section

    def work(connection: Connection) -> dict[str, Any]:
        last, newest, pending = catalog.summary(connection, scenario.name)
        served = catalog.release(connection, scenario.name, scenario.head.release_id)
        ready = ready_reports(connection, scenario.name, scenario.recipe, COUNT_LIMIT)
        asked = ready_instructions(connection, scenario.name, scenario.recipe, COUNT_LIMIT)
        return {
            "scenario_step": newest,
            "last_committed_step": last
            and {
                "step": last["step"],
                "recorded_at": last["recorded_at"],
                "metrics": load(last["metrics"]),
            },
            "head": served
            and {
                "step": served["step"],
                "operation": served["operation"],
                "recorded_at": served["recorded_at"],
                "rollback_target_release_id": served["rollback_target_release_id"],
                "metrics": load(served["metrics"]),
            },
            "last_record_at": newest_record(connection, scenario.name),
            "batch": {"have": len(ready), "need": section.batch_size},
            "batch_ready": len(ready) >= section.batch_size,
            "pending_instructions": len(asked),
            "pending_reviews": pending,
            "step": _running(connection, scenario, here.growth.rooms.progress.get(scenario.name)),
            "counts": counts(connection, scenario.name),
        }

    return {
        "recipe": scenario.recipe,
        "processor": section.use,
        "surface": recipe.surface,
        "adapter": section.adapter,
        "training_mode": scenario.training_mode,
        "release_id": scenario.head.release_id,
        "content_id": scenario.head.content_id,
        "budgets": here.exchange.budgets.state(scenario.name),
    } | await here.store.read(work)


def _running(connection: Connection, scenario: Scenario, progress: Progress | None) -> dict[str, Any] | None:
    open_steps = steps.unfinished(connection, scenario.name)
    if not open_steps:
        return None
    row = steps.get(connection, scenario.name, open_steps[0])
    done, total = (progress.done, progress.total) if progress and progress.step == row["step"] else (0, None)
    return {"step": row["step"], "state": row["state"], "done": done, "total": total}


routes = [Route("/healthz", healthz), Route("/reef/status", status)]
