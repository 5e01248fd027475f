"""Observe: a report is stored, judged, and growth hears of it."""

import asyncio
import logging
from typing import Any

from daemon.evaluation.sign_test import MIN_DECIDED
from daemon.events import EventBus
from daemon.growth.worker import Growth
from daemon.harness.scan import scan_text
from daemon.records.book import RecordBook
from daemon.records.draft import Draft
from daemon.records.intake import Intake, store_instruction, store_report
from daemon.records.judging import Judge
from daemon.records.references import scenario_of
from daemon.releases.history import Published
from daemon.serving.scenarios import Scenario, Scenarios
from daemon.store.store import Store
from reef.errors import Invalid, ReefError, Unsupported
from reef.feedback import Usage
from reef.ids import DEFAULT_SCENARIO

log = logging.getLogger("reef.growth")

JUDGE_EVERY_S = 60.0
GATE_HINT = (
    f"an automatic gate needs at least {MIN_DECIDED} gate tasks; `reef init` writes a reef.toml and a "
    "tasks.toml to start from. Until then candidates wait in `reef pending`"
)


class Observer:
    """Takes in reports, wakes what waits for a record, and tells of releases."""

    def __init__(
        self,
        store: Store,
        book: RecordBook,
        judge: Judge,
        scenarios: Scenarios,
        growth: Growth,
        events: EventBus,
    ) -> None:
        self._store = store
        self._book = book
        self._judge = judge
        self._scenarios = scenarios
        self._growth = growth
        self._events = events

    async def report(self, report: Intake, scenario: str | None) -> tuple[str, str]:
        """Store and judge one report; returns its id and scenario.

        Raises:
            Invalid: a reference is unknown, foreign, twice there or no inference.
            Conflict: its id is taken by other content.
        """
        name = scenario or await self._owner(report) or DEFAULT_SCENARIO
        await self._scenarios.serve(name)
        recipe = self._scenarios.get(name).recipe
        report_id = await self._store.write(
            lambda connection: store_report(connection, self._book, name, recipe, report)
        )
        try:
            await self._judge.judge(report_id)
        except ReefError as error:  # the report is stored; it is judged at the next round
            log.warning("report %s is not judged yet: %s", report_id, error)
        self._events.publish("report", name, agent_record_id=report_id, score=report.score)
        self._growth.poke(name)
        return report_id, name

    async def instruct(self, instruction: Intake, scenario: Scenario) -> str:
        """Store what somebody asks for in words, and let growth make a step of it; returns its id.

        Raises:
            Refused: it holds a credential, or a phrase that would override instructions.
            Unsupported: the scenario only records.
            Invalid: its steps come from full batches only.
            Conflict: its id is taken by other content.
        """
        name = scenario.name
        if self._growth.rooms.recipe_of(name).surface == "none":
            raise Unsupported(f"scenario `{name}` only records, so there is nothing to change")
        if scenario.training_mode == "auto":
            raise Invalid(
                f"scenario `{name}` takes no instructions: its training mode is `auto`",
                hint="set it to `hybrid` or `manual`",
            )
        for refused in scan_text(str(instruction.feedback)):
            raise refused
        instruction_id = await self._store.write(
            lambda connection: store_instruction(connection, self._book, name, scenario.recipe, instruction)
        )
        self._growth.poke(name)
        return instruction_id

    async def keep_judging(self) -> None:
        """Ask again, every now and then, for what could not be judged when it came."""
        while True:
            await asyncio.sleep(JUDGE_EVERY_S)
            try:
                await self._judge.recover()
            except ReefError as error:
                log.warning("judging again failed: %s", error)
            except Exception:  # a bug, of Reef or of a plug-in, must not end it for all others
                log.exception("judging again failed")
            for name in self._scenarios.names():
                self._growth.poke(name)

    def recorded(self, draft: Draft) -> None:
        """A record was stored: say so."""
        self._events.publish(
            "record",
            draft.scenario,
            agent_record_id=draft.id,
            request_type="inference",
            kind=draft.kind,
            status=draft.status,
            model=draft.model,
            run=draft.run,
            session=draft.session,
            usage={name: getattr(draft.usage, name) for name in Usage.__slots__},
            total_ms=draft.total_ms,
        )
        for report, receipt in draft.superseded:
            self._events.publish(
                "verdict",
                draft.scenario,
                report=report,
                receipt=receipt,
                state="ineligible",
                reason="superseded",
                step=None,
            )

    def awaited(self, draft: Draft) -> bool:
        """Whether reports waited for a record that was stored; they are to be judged (`judge_waiting`)."""
        return draft.id in self._book.awaited

    async def judge_waiting(self, draft: Draft) -> None:
        """Judge the reports that waited for a record."""
        self._book.awaited.discard(draft.id)
        await self._judge.stored(draft.id)
        self._growth.poke(draft.scenario)

    async def released(self, release: Published) -> None:
        """A release was published and is served now."""
        self._events.publish(
            "release",
            release.scenario,
            step=release.step,
            release_id=release.release_id,
            content_id=release.content_id,
            operation=release.operation,
            current=True,
            pending=False,
        )

    async def _owner(self, report: Intake) -> str | None:
        if not report.references:
            return None
        first = report.references[0]
        return await self._store.read(lambda connection: scenario_of(connection, self._book, first))


def gate_hint(unconfigured: bool) -> dict[str, Any]:
    """The line that tells why candidates wait for a person, where nothing is configured."""
    return {"hint": GATE_HINT} if unconfigured else {}
