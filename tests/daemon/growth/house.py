"""A store with steps in it, and nothing around it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import insert, update

from daemon.growth.lease import Lease, take
from daemon.store.schema import scenarios, steps
from daemon.store.store import Store


class House:
    def __init__(self, store: Store) -> None:
        self.store = store

    def write(self, work: Callable[[Any], Any]) -> Any:
        return self.store.writer.submit(work).result(10)

    def lease(self, name: str) -> Lease:
        found = self.write(lambda connection: take(connection, name, "me"))
        assert isinstance(found, Lease)
        return found

    def scenario(self, name: str) -> None:
        row = {"scenario": name, "folded": name, "recipe": "r", "created_at": ""}
        self.write(lambda connection: connection.execute(insert(scenarios), row))

    def step(self, name: str, number: int = 1, **values: Any) -> None:
        row = {"scenario": name, "step": number, "state": "queued", "started_at": "", "recipe": "r"}
        row |= {"processor": "p", "batch": "[]"} | values
        self.write(lambda connection: connection.execute(insert(steps), row))

    def change(self, table: Any, name: str, **values: Any) -> None:
        self.write(
            lambda connection: connection.execute(
                update(table).where(table.c.scenario == name).values(**values)
            )
        )


@contextmanager
def house(folder: Path) -> Iterator[House]:
    store = Store.at(folder / "reef.db")
    try:
        yield House(store)
    finally:
        store.close()
