"""What growth works with, handed over once by the composition root."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from daemon.events import EventBus
from daemon.growth.caller import Caller
from daemon.releases.history import History
from daemon.runtimes.router import Router
from daemon.serving.scenarios import Scenarios
from daemon.settings.model import GrowthSection
from daemon.store.store import Store
from reef.recipe import Recipe
from reef.tasks import Task


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the gate of a running step is, in episodes."""

    step: int
    done: int
    total: int


@dataclass(slots=True)
class Rooms:
    """`recipe_of` and `tasks_of` answer for a scenario; tasks are read anew for each step."""

    store: Store
    history: History
    scenarios: Scenarios
    router: Router
    caller: Caller
    events: EventBus
    limits: GrowthSection
    holder: str
    recipe_of: Callable[[str], Recipe]
    tasks_of: Callable[[str], Sequence[Task]]
    step_slots: asyncio.Semaphore
    episode_slots: asyncio.Semaphore
    cancelled: set[tuple[str, int]] = field(default_factory=set)
    """Steps (scenario, number) under way that a person wants to end: so that they hear of what the store
    says (`steps.cancel_asked`) at once."""
    progress: dict[str, Progress] = field(default_factory=dict)
    """By scenario: of the step that runs, or ran last."""
