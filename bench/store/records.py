"""Many records of 4 KB: their bytes, looking one up, listing the latest, whether the intake slows down."""

import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert

from bench.report import Check
from daemon.records.book import RecordBook
from daemon.records.draft import Draft
from daemon.records.listing import Filter, listing
from daemon.records.query import find, to_wire
from daemon.store.schema import scenarios
from daemon.store.store import Store
from reef.feedback import Usage
from reef.ids import new_receipt, now, rfc3339

_SCENARIOS = 20
_LOOKED_UP = 500
_IN_FLIGHT = 512


def open_book(folder: Path, names: list[str]) -> tuple[Store, RecordBook]:
    """A new store with these scenarios in it."""
    store = Store.at(folder / "reef.db")
    rows = [
        {"scenario": name, "folded": name, "recipe": "record", "created_at": rfc3339(now())}
        | {"next_sequence": 1, "next_step": 0}
        for name in names
    ]
    store.writer.submit(lambda connection: connection.execute(insert(scenarios), rows)).result()
    return store, RecordBook(store)


def measure(folder: Path, count: int) -> tuple[str, dict[str, float], list[Check]]:
    """Each record has 4 KB of text that does not compress, and is looked up by its receipt."""
    place = folder / "records"
    place.mkdir()
    store, book = open_book(place, [f"s{number}" for number in range(_SCENARIOS)])
    plain, receipts, tenths = 0, [], []
    waiting: list[Future[Usage]] = []
    began = time.perf_counter()
    for number, draft in enumerate(_drafts(count), 1):
        plain += len(draft.request) + len(draft.response)
        receipts.append(draft.id)
        waiting.append(store.writer.submit_together(book._insert, draft))
        if len(waiting) >= _IN_FLIGHT or number == count:
            for future in waiting:
                future.result()
            waiting.clear()
        if number * 10 // count > len(tenths):
            tenths.append(time.perf_counter() - began)
            began = time.perf_counter()
    dice = random.Random(1)
    one = _median_ms(store, [partial(_look_up, receipt) for receipt in dice.sample(receipts, _LOOKED_UP)])
    latest = _median_ms(store, [partial(_latest, f"s{number % _SCENARIOS}") for number in range(100)])
    store.close()  # which folds the write-ahead log back
    size = (place / "reef.db").stat().st_size
    values = {
        "records": float(count),
        "bytes, x plain": size / plain,
        "look-up, p50 ms": one,
        "latest 50, p50 ms": latest,
        "records/s": count / sum(tenths),
        "last tenth, x the first's pace": tenths[0] / tenths[-1],
    }
    told = f"{count:,} records"
    return (
        "records",
        values,
        [
            Check(10, f"bytes of {told}", values["bytes, x plain"], 1.2, "x plain"),
            Check(10, f"looking up a receipt among {told}, p50", one, 0.2, "ms"),
            Check(10, f"the latest 50 of {told}, p50", latest, 1.0, "ms"),
            Check(
                10,
                "pace of the last tenth",
                tenths[0] / tenths[-1],
                0.7,
                "x that of the first",
                at_least=True,
            ),
        ],
    )


def _look_up(receipt: str, connection: Connection) -> object:
    return to_wire(connection, find(connection, receipt))


def _latest(scenario: str, connection: Connection) -> object:
    return listing(connection, Filter(scenario=scenario, descending=True))


def _drafts(count: int) -> Iterator[Draft]:
    dice = random.Random(0)
    for number in range(count):
        asked = {"model": "m", "messages": [{"role": "user", "content": dice.randbytes(1650).hex()}]}
        said = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": dice.randbytes(300).hex()}}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 200, "total_tokens": 1100},
        }
        yield Draft(
            new_receipt(),
            f"s{number % _SCENARIOS}",
            now(),
            "chat",
            request=json.dumps(asked).encode(),
            response=json.dumps(said).encode(),
            http_status=200,
            model="m",
            upstream_name="main",
            total_ms=1.0,
        )


def _median_ms(store: Store, reads: list[Callable[[Connection], Any]]) -> float:
    times = []
    for read in reads:
        began = time.perf_counter()
        store.read_now(read)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000
