"""Opening the rooms in order, and closing them again in reverse."""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import lru_cache

from daemon.evaluation.tasks import load_tasks
from daemon.events import EventBus
from daemon.growth.budget import give_back, settle_all_leftovers
from daemon.growth.caller import Caller
from daemon.growth.observer import Observer
from daemon.growth.plugins import make_recipe, seed_tree
from daemon.growth.review import Review
from daemon.growth.rooms import Rooms as GrowthRooms
from daemon.growth.worker import Growth
from daemon.http.rooms import Rooms
from daemon.journal import Journal
from daemon.records.book import RecordBook
from daemon.records.draft import Draft
from daemon.records.judging import Judge
from daemon.records.used import used_since
from daemon.releases.git import GitReleases
from daemon.releases.history import History
from daemon.runtimes.choose import choose
from daemon.runtimes.make import runtimes_of
from daemon.runtimes.router import Router
from daemon.serve import Start
from daemon.serving.budgets import Budgets
from daemon.serving.exchange import Exchange
from daemon.serving.scenarios import Scenarios
from daemon.settings.model import RecipeSection, Settings
from daemon.settings.resolve import is_unconfigured, recipe_for
from daemon.store.store import Store
from reef.errors import Unavailable
from reef.recipe import Recipe
from reef.tasks import Task

log = logging.getLogger("reef")


async def open_rooms(stack: AsyncExitStack, start: Start, url: str, journal: Journal) -> Rooms:
    """Open everything; the stack closes it.

    Raises:
        ReefError: the store, the repository, an upstream or the model cannot be used.
    """
    settings = start.loaded.settings
    home = start.home
    choice = await choose(settings, _environment(settings))
    router = Router(runtimes_of(choice, settings.engine, home.logs), choice.upstreams, settings.price)
    log.info("runtime: %s", choice.why)
    store = await asyncio.to_thread(Store.at, home.database)
    stack.callback(store.close)
    try:
        await store.gate.prove()
    except Unavailable as error:  # `reef up` and `reef status` say so, and each request that needs it
        log.error("%s (hint: %s)", error.message, error.hint)
    git = await asyncio.to_thread(GitReleases, home.releases)
    stack.callback(git.close)
    history = History(store, git)
    recipes = Recipes(settings)
    book = RecordBook(store, scrub=settings.reef.scrub, price_of=router.price)
    events = EventBus()
    scenarios = Scenarios(history, book, recipes.configured, seed_tree, settings.scenarios.create)
    await history.recover()
    await scenarios.load()
    pending: set[asyncio.Task[None]] = set()

    budgets = Budgets(settings.budget, lambda scenario, what: events.publish("budget", scenario, **what))
    await asyncio.to_thread(
        budgets.load,
        scenarios.names(),
        lambda scenario, day: store.read_now(lambda connection: used_since(connection, scenario, day)),
    )

    def on_record(draft: Draft) -> None:
        budgets.count(draft)
        scenarios.recorded(draft)
        observer.recorded(draft)
        if observer.awaited(draft):
            task = asyncio.ensure_future(observer.judge_waiting(draft))
            pending.add(task)
            task.add_done_callback(pending.discard)

    exchange = Exchange(
        router,
        book,
        scenarios,
        on_record_failure=settings.reef.on_record_failure,
        on_record=on_record,
        upstream_of=lru_cache(1024)(lambda scenario: recipe_for(settings, scenario)[1].upstream),
        budgets=budgets,
    )
    growth_rooms = GrowthRooms(
        store=store,
        history=history,
        scenarios=scenarios,
        router=router,
        caller=Caller(exchange),
        events=events,
        limits=settings.growth,
        holder=str(home.root),
        recipe_of=recipes.of,
        tasks_of=recipes.tasks_of,
        step_slots=asyncio.Semaphore(settings.growth.parallel_steps),
        episode_slots=asyncio.Semaphore(settings.growth.parallel_episodes),
    )
    growth = Growth(growth_rooms)
    review = Review(growth_rooms, growth.runs)
    judge = Judge(store, book, recipes.of, events)
    observer = Observer(store, book, judge, scenarios, growth, events)
    history.listeners.append(observer.released)
    await router.start()
    stack.push_async_callback(router.close)
    await judge.recover()
    await store.write(lambda connection: settle_all_leftovers(connection, growth_rooms.holder))
    await review.recover()
    stack.push_async_callback(growth.stop)
    judging = asyncio.create_task(observer.keep_judging(), name="judging")
    stack.callback(judging.cancel)
    for name in scenarios.names():
        growth.watch(scenarios.get(name))
    idle = [name for name in scenarios.names() if not growth.runs(name)]
    await store.write(lambda connection: give_back(connection, idle))  # before any loop asks for money
    scenarios.on_created.append(growth.watch)
    return Rooms(
        settings=settings,
        home=str(home.root),
        url=url,
        started_at=start.started_at,
        why=choice.why,
        unconfigured=is_unconfigured(settings),
        store=store,
        book=book,
        history=history,
        scenarios=scenarios,
        router=router,
        exchange=exchange,
        observer=observer,
        growth=growth,
        review=review,
        events=events,
        journal=journal,
        recipe_of=recipes.of,
        tasks_of=recipes.tasks_of,
    )


def _environment(settings: Settings) -> Mapping[str, str]:
    """The environment; `[reef] model` says what to ask an upstream that is found rather than configured."""
    model = settings.reef.model
    return os.environ if model is None else os.environ | {"REEF_UPSTREAM_MODEL": model}


class Recipes:
    """The configured recipes and their tasks, by scenario."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: dict[str, Recipe] = {}

    def configured(self, scenario: str) -> tuple[str, RecipeSection]:
        return recipe_for(self._settings, scenario)

    def of(self, scenario: str) -> Recipe:
        name, section = self.configured(scenario)
        if (recipe := self._made.get(name)) is None:
            recipe = self._made[name] = make_recipe(section.use, section.options())
        return recipe

    def tasks_of(self, scenario: str) -> Sequence[Task]:
        """The scenario's tasks, read anew: a user adds tasks while the daemon runs."""
        _, section = self.configured(scenario)
        return load_tasks(section.tasks) if section.tasks is not None else ()
