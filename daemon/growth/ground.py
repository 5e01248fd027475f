"""What a step stands on: read once, and the same for its price, its calls and its gate."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from sqlalchemy import RowMapping

from daemon.evaluation.gate import load_policy
from daemon.evaluation.scores import Plan
from daemon.growth import steps
from daemon.growth.rooms import Rooms
from daemon.records.batches import load_batch
from daemon.serving.scenarios import Scenario
from daemon.store.codec import load
from reef.errors import Unsupported
from reef.feedback import BatchUnit
from reef.recipe import Recipe
from reef.runtime import Price, Runtime
from reef.tasks import Task
from reef.tree import HarnessTree


@dataclass(frozen=True, slots=True)
class Ground:
    """`runtime` answers the step's calls, asked for `model` by its name there: routed once, so that `price`
    is that of who is asked. None where no call is needed, or where nobody knows what it costs."""

    recipe: Recipe
    tasks: Sequence[Task]
    batch: Sequence[BatchUnit]
    tried: frozenset[str]
    """Proposers that had the batch before."""
    tree: HarnessTree
    plan: Plan
    seed: int
    copies: bool
    model: str | None
    runtime: Runtime | None
    price: Price | None
    stops: Callable[[], bool]

    @property
    def gate_tasks(self) -> int:
        return len(self.plan.units())


async def survey(rooms: Rooms, scenario: Scenario, row: RowMapping, stops: Callable[[], bool]) -> Ground:
    """The ground of a step.

    Raises:
        ConfigError: the tasks or the gate are configured wrongly.
        Unsupported: the step has to ask a model, and no upstream names one.
    """
    recipe = rooms.recipe_of(scenario.name)
    tasks = await asyncio.to_thread(rooms.tasks_of, scenario.name)
    batch = await rooms.store.read(lambda connection: load_batch(connection, load(row["batch"])))
    tried = await rooms.store.read(lambda connection: steps.tried_proposers(connection, row))
    gate = scenario.section.gate
    seed = int.from_bytes(blake2b(f"{scenario.name}:{row['step']}".encode(), digest_size=8).digest())
    copies = gate.temperature == 0
    plan = load_policy(gate).plan(tasks, seed=seed, copies=copies)
    runtime: Runtime | None = None
    model: str | None = None
    price: Price | None = None
    try:
        wanted = scenario.section.model or _most_seen(batch)
        runtime, model = rooms.router.own(wanted, scenario.section.upstream)
        price = rooms.router.price(runtime.name, model)
    except Unsupported:
        if plan.looks or recipe.needs_model(tried):
            raise
    return Ground(
        recipe=recipe,
        tasks=tasks,
        batch=batch,
        tried=tried,
        tree=await rooms.scenarios.tree(row["base_content_id"]),
        plan=plan,
        seed=seed,
        copies=copies,
        model=model,
        runtime=runtime,
        price=price,
        stops=stops,
    )


def _most_seen(batch: Sequence[BatchUnit]) -> str | None:
    seen = Counter(exchange.model for unit in batch for exchange in unit.exchanges if exchange.model)
    return seen.most_common(1)[0][0] if seen else None
