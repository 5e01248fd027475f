"""Scenarios: which exist, what each serves, and creating one when traffic first names it."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, select, update

from daemon.harness.adapters import adapter
from daemon.harness.files import from_files, to_files
from daemon.harness.render import chat_prefix
from daemon.records.book import RecordBook
from daemon.records.draft import Draft
from daemon.releases import catalog
from daemon.releases.history import History, Publication, Published
from daemon.serving.served import Served
from daemon.settings.model import RecipeSection
from daemon.store.schema import scenarios as table
from daemon.wire.prefix import Prefix
from reef.errors import Conflict, NotFound
from reef.ids import check_scenario, now, rfc3339
from reef.tree import HarnessTree

PREFIXES_KEPT = 256
PINS_KEPT = 4096

Create = Literal["implicit", "explicit"]


@dataclass(slots=True)
class Scenario:
    """One scenario as it stands: its configured recipe and the release at its head."""

    name: str
    recipe: str
    section: RecipeSection
    head: Served
    start_release_id: str | None
    training_mode: str
    created_at: str


class Scenarios:
    """The registry. `configured(name)` says which recipe a scenario gets."""

    def __init__(
        self,
        history: History,
        book: RecordBook,
        configured: Callable[[str], tuple[str, RecipeSection]],
        seed: Callable[[RecipeSection], HarnessTree],
        create: Create = "implicit",
    ) -> None:
        self._history = history
        self._book = book
        self._configured = configured
        self._seed = seed
        self._create_mode = create
        self._loaded: dict[str, Scenario] = {}
        self._folded: dict[str, str] = {}
        self._archived: set[str] = set()
        self._prefixes: OrderedDict[str, Prefix] = OrderedDict()
        self._pins: OrderedDict[tuple[str, str], Served] = OrderedDict()
        self._unpinned: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Conversations of which there are no records, so that they are not looked for each time."""
        self._elsewhere = 0
        """Conversations that were recorded with another release than the head, and so not pinned yet."""
        self._creating = asyncio.Lock()
        self.on_created: list[Callable[[Scenario], None]] = []
        history.listeners.append(self._published)

    async def load(self) -> None:
        """Read the scenarios that the store knows."""
        rows = await self._history.store.read(
            lambda connection: list(connection.execute(select(table)).mappings())
        )
        for row in rows:
            self._folded[row["folded"]] = row["scenario"]
            if row["archived_at"] is not None:
                self._archived.add(row["scenario"])
                await asyncio.to_thread(self._history.git.archive, row["scenario"])  # where a crash left it
            elif row["head_release_id"] is not None:
                await self._adopt(row)

    def names(self) -> list[str]:
        return sorted(self._loaded)

    def archived(self) -> list[str]:
        """The names of those that were taken out of service."""
        return sorted(self._archived)

    def get(self, name: str) -> Scenario:
        """A scenario that exists. Raises `NotFound`."""
        if (scenario := self._loaded.get(name)) is None:
            state = "is archived" if name in self._archived else "does not exist"
            raise NotFound(f"scenario `{name}` {state}", hint="see `reef scenarios`")
        return scenario

    async def serve(self, name: str, *, start: str | None = None) -> Served:
        """What `name` serves now; made on first use. `start` is the release a new one starts from.

        Raises:
            Invalid: the name is not legal.
            Conflict: it is archived, differs from another name only in case, or started elsewhere.
            NotFound: scenarios are made explicitly here, or `start` is unknown.
        """
        scenario, new = self._loaded.get(name), False
        if scenario is None:
            if self._create_mode == "explicit":
                raise NotFound(f"no scenario named `{name}`", hint=f"reef scenarios create {name}")
            scenario, new = await self.create(name, start=start)
        if not new and start is not None and start != scenario.start_release_id:
            await self._refuse_other_start(name, start)
        return scenario.head

    async def default(self, name: str) -> Served:
        """What a new scenario of this name would serve, as no release: for when none can be made."""
        _, section = self._configured(name)
        return Served(name, "", "", chat_prefix(self._seed(section)) if _injects(section) else None)

    async def create(self, name: str, *, start: str | None = None) -> tuple[Scenario, bool]:
        """Make a scenario, or find it; the flag says whether it is new."""
        check_scenario(name)
        async with self._creating:
            if (known := self._loaded.get(name)) is not None:
                return known, False
            if (other := self._folded.get(name.lower())) is not None:
                raise Conflict(
                    f"scenario `{name}` is archived"
                    if other == name
                    else f"`{name}` differs from `{other}` only in case",
                    hint="use another name" if other == name else f"use `{other}`",
                )
            recipe, section = self._configured(name)
            content_id = await self._start_content(section, start)
            moment = rfc3339(now())
            row: dict[str, Any] = {
                "scenario": name,
                "folded": name.lower(),
                "recipe": recipe,
                "created_at": moment,
                "next_sequence": 1,
                "next_step": 0,
                "start_release_id": start,
            }
            publication = Publication(
                scenario=name,
                operation="creation",
                content_id=content_id,
                parent=None,
                summary=f"Create scenario {name}",
                recipe=recipe,
            )
            published = await self._history.create(name, publication, row)
            self._folded[name.lower()] = name
            scenario = await self._adopt(
                row
                | {
                    "head_release_id": published.release_id,
                    "head_content_id": published.content_id,
                    "training_mode": None,
                }
            )
        for listener in self.on_created:
            listener(scenario)
        return scenario, True

    async def pinned(self, name: str, conversation: str) -> Served | None:
        """What a running conversation started with, or None when it is not known."""
        key = (name, conversation)
        if (served := self._pins.get(key)) is not None:
            self._pins.move_to_end(key)
            return served
        if key in self._unpinned:
            self._unpinned.move_to_end(key)
            return None
        elsewhere = self._elsewhere
        release_id = await self._book.release_of(name, conversation)
        if release_id is None:
            if key not in self._pins and self._elsewhere == elsewhere:  # none was stored in the meantime
                self._unpinned[key] = None
                while len(self._unpinned) > PINS_KEPT:
                    self._unpinned.popitem(last=False)
            return None
        if name not in self._loaded:
            return None
        try:
            served = await self.at(name, release_id)
        except NotFound:
            return None
        self.pin(name, conversation, served)
        return served

    def recorded(self, draft: Draft) -> None:
        """A record was stored, perhaps the first of its conversation."""
        name, conversation = draft.scenario, draft.conversation
        if conversation is None or (name, conversation) in self._pins:
            return
        scenario = self._loaded.get(name)
        if scenario is not None and scenario.head.release_id == draft.release_id:
            self.pin(name, conversation, scenario.head)
        else:
            self._elsewhere += 1
        self._unpinned.pop((name, conversation), None)

    def pin(self, name: str, conversation: str, served: Served) -> None:
        self._pins[(name, conversation)] = served
        while len(self._pins) > PINS_KEPT:
            self._pins.popitem(last=False)

    async def at(self, name: str, release_id: str) -> Served:
        """One release of a scenario (or a candidate). Raises `NotFound`."""
        scenario = self.get(name)
        if release_id == scenario.head.release_id:
            return scenario.head
        content_id = await self._history.store.read(
            lambda connection: catalog.content_of(connection, release_id)
        )
        if content_id is None:
            raise NotFound(f"no release `{release_id}`", hint=f"see `reef log -s {name}`")
        return await self._served(name, scenario.section, release_id, content_id)

    async def tree(self, content_id: str) -> HarnessTree:
        return from_files(await self._history.files(content_id))

    async def content_for(self, tree: HarnessTree) -> str:
        """Store a tree's files and return their content id."""
        return await asyncio.to_thread(self._history.git.write_tree, to_files(tree))

    async def set_training_mode(self, name: str, mode: str) -> None:
        scenario = self.get(name)
        change = update(table).where(table.c.scenario == name).values(training_mode=mode)
        await self._history.store.write(lambda connection: connection.execute(change))
        scenario.training_mode = mode

    async def archive(self, name: str, close: Callable[[Connection], None]) -> tuple[str, ...]:
        """Take a scenario out of service, and `close` what it had under way in the same commit; returns the
        refs that keep its history."""
        self.get(name)
        change = update(table).where(table.c.scenario == name).values(archived_at=rfc3339(now()))

        def work(connection: Connection) -> None:
            close(connection)
            connection.execute(change)

        await self._history.store.write(work)
        del self._loaded[name]
        self._archived.add(name)
        return await asyncio.to_thread(self._history.git.archive, name)

    async def _refuse_other_start(self, name: str, start: str) -> None:
        """A client may also name the scenario's own first release as its start."""
        first = await self._history.store.read(lambda connection: catalog.row_at(connection, name, 0))
        if first is None or first["release_id"] != start:
            raise Conflict(
                f"scenario `{name}` did not start from {start}",
                hint="leave x-reef-release-id out, or use a new scenario name",
            )

    async def _start_content(self, section: RecipeSection, start: str | None) -> str:
        if start is None:
            return await self.content_for(self._seed(section))
        content_id = await self._history.store.read(lambda connection: catalog.content_of(connection, start))
        if content_id is None:
            raise NotFound(
                f"no release `{start}` to start from", hint="use a full release id from `reef log`"
            )
        return content_id

    async def _adopt(self, row: Any) -> Scenario:
        name = row["scenario"]
        recipe, section = self._configured(name)
        scenario = Scenario(
            name=name,
            recipe=recipe,
            section=section,
            head=await self._served(name, section, row["head_release_id"], row["head_content_id"]),
            start_release_id=row["start_release_id"],
            training_mode=row["training_mode"] or section.training_mode,
            created_at=row["created_at"],
        )
        self._loaded[name] = scenario
        return scenario

    async def _served(self, name: str, section: RecipeSection, release_id: str, content_id: str) -> Served:
        prefix = await self.prefix(content_id) if _injects(section) else None
        return Served(name, release_id, content_id, prefix)

    async def prefix(self, content_id: str) -> Prefix:
        """The chat rendering of a tree."""
        if (prefix := self._prefixes.get(content_id)) is None:
            prefix = self._prefixes[content_id] = chat_prefix(await self.tree(content_id))
            while len(self._prefixes) > PREFIXES_KEPT:
                self._prefixes.popitem(last=False)
        return prefix

    async def _published(self, release: Published) -> None:
        scenario = self._loaded.get(release.scenario)
        if scenario is not None:
            scenario.head = await self._served(
                release.scenario, scenario.section, release.release_id, release.content_id
            )


def _injects(section: RecipeSection) -> bool:
    return section.inject if section.inject is not None else adapter(section.adapter).inject
