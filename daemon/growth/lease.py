"""The growth lease: one daemon at a time grows a scenario, and a step's writes prove they are its.

A lease is a row with an epoch that rises each time it is taken. A transaction of a step checks the
epoch it was started under, so a daemon that was replaced meanwhile can write nothing more.
"""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, bindparam, insert, select, update

from daemon.store.schema import leases
from reef.errors import Conflict
from reef.ids import now, rfc3339

LEASE_S = 60.0


_EXTEND = update(leases).where(leases.c.scenario == bindparam("of"), leases.c.epoch == bindparam("since"))
"""Built once: every write of a step runs it."""


class LostLease(Conflict):
    """Somebody else grows the scenario now."""


@dataclass(frozen=True, slots=True)
class Lease:
    scenario: str
    holder: str
    epoch: int


def take(connection: Connection, scenario: str, holder: str) -> Lease | None:
    """Take the lease if it is free, expired, or already this holder's (from before a restart)."""
    row = connection.execute(select(leases).where(leases.c.scenario == scenario)).mappings().first()
    moment = now()
    until = rfc3339(moment + timedelta(seconds=LEASE_S))
    if row is None:
        connection.execute(
            insert(leases), {"scenario": scenario, "holder": holder, "epoch": 1, "expires_at": until}
        )
        return Lease(scenario, holder, 1)
    if row["holder"] != holder and row["expires_at"] > rfc3339(moment):
        return None
    epoch = row["epoch"] + 1
    taken = connection.execute(
        update(leases)
        .where(leases.c.scenario == scenario, leases.c.epoch == row["epoch"])
        .values(holder=holder, epoch=epoch, expires_at=until)
    ).rowcount
    return Lease(scenario, holder, epoch) if taken == 1 else None


def prove(connection: Connection, lease: Lease) -> None:
    """Extend the lease, or raise `LostLease` when somebody else has taken it."""
    until = rfc3339(now() + timedelta(seconds=LEASE_S))
    kept = connection.execute(
        _EXTEND, {"of": lease.scenario, "since": lease.epoch, "expires_at": until}
    ).rowcount
    if kept != 1:
        raise LostLease(
            f"another daemon took over growing `{lease.scenario}`", hint="only one daemon grows a scenario"
        )
