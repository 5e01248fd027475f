"""A store with scenarios in it, and the rooms that take in records and reports, without a daemon."""

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import insert, select

from daemon.events import EventBus
from daemon.records import batches
from daemon.records.book import RecordBook
from daemon.records.draft import Draft
from daemon.records.intake import parse, store_report
from daemon.records.judging import Judge
from daemon.store.schema import pairs, scenarios
from daemon.store.store import Store
from recipes.harness_evolve import HarnessEvolve
from reef.ids import new_receipt, now, rfc3339
from reef.recipe import Recipe

T = TypeVar("T")
RECIPE = "default"


@dataclass
class Desk:
    """Every scenario learns with `recipe`."""

    store: Store
    recipe: Recipe = field(default_factory=HarnessEvolve)

    def __post_init__(self) -> None:
        self.book = RecordBook(self.store)
        self.judge = Judge(self.store, self.book, lambda _: self.recipe, EventBus())

    @classmethod
    def at(cls, folder: Path) -> "Desk":
        desk = cls(Store.at(folder / "reef.db"))
        for name in ("city", "other"):
            desk.scenario(name)
        return desk

    def scenario(self, name: str) -> None:
        row = {
            "scenario": name,
            "folded": name,
            "recipe": RECIPE,
            "created_at": rfc3339(now()),
            "next_sequence": 1,
            "next_step": 1,
            "head_release_id": "r" * 40,
            "head_content_id": "c" * 40,
        }
        self.run(self.store.write(lambda connection: connection.execute(insert(scenarios), row)))

    def run(self, work: Awaitable[T]) -> T:
        async def whole() -> T:
            return await work

        return asyncio.run(whole())

    def draft(self, text: str = "How warm is it?", answer: str = "70 F", **more: Any) -> Draft:
        said = {
            "id": f"chatcmpl-{new_receipt()[-6:]}",
            "object": "chat.completion",
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": answer, **more.pop("message", {})},
                }
            ],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        }
        asked = {"model": "m", "messages": [{"role": "user", "content": text}]}
        values: dict[str, Any] = {
            "id": new_receipt(),
            "scenario": "city",
            "created_at": now(),
            "dialect": "chat",
            "request": json.dumps(asked).encode(),
            "response": json.dumps(said | more.pop("body", {})).encode(),
            "http_status": 200,
        }
        return Draft(**values | more)

    def record(self, text: str = "How warm is it?", **more: Any) -> str:
        draft = self.draft(text, **more)
        self.run(self.book.append(draft))
        return draft.id

    def report(self, *references: str, scenario: str = "city", judge: bool = True, **body: Any) -> str:
        """Take in a report as the route does."""
        intake = parse({"references": list(references)} | body)
        report_id = self.run(self.store.write(lambda c: store_report(c, self.book, scenario, RECIPE, intake)))
        if judge:
            self.run(self.judge.judge(report_id))
        return report_id

    def lesson(self, *references: str, **body: Any) -> str:
        return self.report(*references, score=0, feedback="Use metric units.", **body)

    def pairs(self, report_id: str) -> dict[str, tuple[str, str]]:
        """Receipt to (state, reason)."""
        query = select(pairs).where(pairs.c.report == report_id)
        rows = self.store.read_now(lambda connection: list(connection.execute(query).mappings()))
        return {row["receipt"]: (row["state"], row["reason"]) for row in rows}

    def verdict(self, report_id: str) -> tuple[str, str]:
        (only,) = self.pairs(report_id).values()
        return only

    def listed(self, **wanted: Any) -> list[dict[str, Any]]:
        return self.store.read_now(lambda connection: batches.report_listing(connection, **wanted))
