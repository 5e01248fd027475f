"""Batches: which reports may teach together, each consumed exactly once."""

from sqlalchemy import insert

from daemon.records import batches
from daemon.store.schema import pairs
from reef.ids import new_receipt
from tests.daemon.records.desk import RECIPE, Desk


def ready(desk: Desk, limit: int = 10, scenario: str = "city") -> list[str]:
    return desk.store.read_now(lambda c: batches.ready_reports(c, scenario, RECIPE, limit))


def consume(desk: Desk, *reports: str, step: int = 1) -> list[dict[str, object]]:
    return desk.run(desk.store.write(lambda c: batches.consume(c, list(reports), RECIPE, step)))


def test_the_oldest_reports_come_first(desk: Desk) -> None:
    reports = [desk.lesson(desk.record()) for _ in range(3)]
    desk.lesson(desk.record(scenario="other"), scenario="other")
    assert ready(desk) == reports
    assert ready(desk, 2) == reports[:2]


def test_a_report_with_a_pair_that_waits_holds_back(desk: Desk) -> None:
    running = desk.draft()
    desk.book.opened(running.id, "city")
    late, early = desk.lesson(desk.record(), running.id), desk.lesson(desk.record())
    assert ready(desk) == [early]
    desk.run(desk.book.append(running))
    desk.book.closed(running.id)
    desk.run(desk.judge.stored(running.id))
    assert ready(desk) == [late, early]


def test_a_batch_is_consumed_once(desk: Desk) -> None:
    receipt, title = desk.record(), desk.record(kind="title")
    report = desk.lesson(receipt, title)
    assert consume(desk, report) == [{"report": report, "receipts": [receipt]}]
    assert ready(desk) == []
    assert consume(desk, report, step=2) == [{"report": report, "receipts": []}]
    (listed,) = desk.listed()
    assert listed["state"] == "consumed"
    steps = {pair["receipt"]: (pair["state"], pair["step"]) for pair in listed["pairs"]}
    assert steps == {receipt: ("consumed", 1), title: ("ineligible", None)}


def test_another_recipes_pairs_are_its_own(desk: Desk) -> None:
    receipt = desk.record()
    report = desk.lesson(receipt)
    theirs = {
        "report": report,
        "receipt": receipt,
        "recipe": "second",
        "scenario": "city",
        "state": "eligible",
        "updated_at": "2026-01-01T00:00:00.000Z",
    }
    desk.run(desk.store.write(lambda c: c.execute(insert(pairs), theirs)))
    consume(desk, report)
    left = desk.store.read_now(lambda c: batches.ready_reports(c, "city", "second", 10))
    assert left == [report]


def test_a_kept_batch_is_loaded_with_its_exchanges(desk: Desk) -> None:
    receipt = desk.record("Where does Anna live?", answer="In Paris.")
    report = desk.report(receipt, score=0, feedback={"text": "shorter", "correction": "Paris"})
    batch = consume(desk, report)
    batch.append({"report": new_receipt(), "receipts": []})
    (unit,) = desk.store.read_now(lambda c: batches.load_batch(c, batch))
    assert (unit.report.id, unit.report.score, unit.report.correction) == (report, 0, "Paris")
    (exchange,) = unit.exchanges
    assert (exchange.receipt, exchange.prompt, exchange.answer) == (
        receipt,
        "Where does Anna live?",
        "In Paris.",
    )
    assert exchange.usage.input_tokens == 3


def test_counts_and_listing_agree(desk: Desk) -> None:
    consume(desk, desk.lesson(desk.record()))
    desk.lesson(desk.record())
    desk.report(desk.record(), score=0.5)
    running = desk.draft()
    desk.book.opened(running.id, "city")
    desk.lesson(running.id)
    assert desk.store.read_now(lambda c: batches.counts(c, "city")) == {
        "records": 7,
        "consumed": 1,
        "eligible": 1,
        "pending": 1,
        "ineligible": 1,
    }
    for state in ("consumed", "eligible", "pending", "ineligible"):
        assert [report["state"] for report in desk.listed(state=state)] == [state]
    assert len(desk.listed(scenario="city")) == 4
    assert desk.listed(scenario="other") == []
