"""What a step stands on: the upstream that is asked is the one whose price is known."""

import asyncio
from types import SimpleNamespace
from typing import Any

from daemon.growth.ground import Ground, survey
from daemon.runtimes.router import Router
from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import RecipeSection, UpstreamSection
from reef.recipe import Recipe
from reef.tree import HarnessTree
from tests.daemon.growth.house import House


def surveyed(home: House, *sections: dict[str, Any], model: str | None = None) -> Ground:
    made = [UpstreamSection.model_validate({"base_url": "http://h", **section}) for section in sections]

    async def tree(_: str) -> HarnessTree:
        return HarnessTree()

    rooms: Any = SimpleNamespace(
        recipe_of=lambda name: Recipe(),
        tasks_of=lambda name: (),
        store=home.store,
        router=Router([HttpUpstream(section, {}) for section in made], made),
        scenarios=SimpleNamespace(tree=tree),
    )
    scenario: Any = SimpleNamespace(name="a", section=RecipeSection(model=model))
    row: Any = {"scenario": "a", "step": 1, "batch": "[]", "base_content_id": "c", "continues": None}
    return asyncio.run(survey(rooms, scenario, row, lambda: False))


CHEAP = {"name": "cheap", "models": ("m*",)}
DEAR = {"name": "dear", "model": "m", "price": {"input": 10, "output": 10}}


def test_who_has_the_price_is_asked(home: House) -> None:
    """`cheap` is the first that takes `m`, but a step that names no model asks an upstream that names one."""
    ground = surveyed(home, CHEAP, DEAR)
    assert ground.runtime is not None
    assert (ground.runtime.name, ground.model) == ("dear", "m")


def test_a_model_is_asked_for_by_its_name_there(home: House) -> None:
    ground = surveyed(home, DEAR | {"alias": {"big": "m"}}, model="big")
    assert ground.model == "m"
