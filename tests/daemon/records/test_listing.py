"""Listing records page by page."""

from datetime import timedelta

from daemon.records.listing import Filter, listing
from reef.ids import now
from tests.daemon.records.desk import Desk


def test_paging_by_receipt_misses_nothing_that_began_early_and_ended_late(desk: Desk) -> None:
    """Within a scenario records stand in the order in which they ended."""
    began = now() - timedelta(hours=1)
    receipts = [desk.record(f"turn {n}", created_at=began + timedelta(minutes=n)) for n in range(4)]
    receipts.append(desk.record("a long stream", created_at=began - timedelta(minutes=1)))
    receipts += [desk.record(f"turn {n}", created_at=began + timedelta(minutes=n)) for n in range(5, 9)]
    for scenario in ("city", None):
        for descending in (True, False):
            found: list[str] = []
            while True:
                wanted = Filter(
                    scenario=scenario, after=found[-1] if found else None, descending=descending, limit=2
                )
                page, _ = desk.store.read_now(lambda connection, wanted=wanted: listing(connection, wanted))
                if not page:
                    break
                found += [row["agent_record_id"] for row in page]
            assert sorted(found) == sorted(receipts)
