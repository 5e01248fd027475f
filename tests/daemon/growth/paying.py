"""A purse for a step that costs money, and what it has cost."""

from typing import Any

from sqlalchemy import func, select

from daemon.growth import budget
from daemon.growth.estimate import CallSize
from daemon.growth.purse import Purse
from daemon.store.schema import holds
from reef.runtime import Price
from tests.daemon.growth.house import House

PRICE = Price(10.0, 10.0)
CALL = CallSize(0, 5_000, 5_000)  # $0.10


def purse(home: House, left: float = 0.25, *, limit: float = 0.25, price: Price | None = PRICE) -> Purse:
    home.write(lambda connection: budget.reserve(connection, "a", 1, left, limit=limit))
    return Purse(home.store, home.lease("a"), 1, price, limit, left, limit - left)


def cost(home: House) -> dict[str, Any]:
    return home.store.read_now(lambda connection: budget.cost_of(connection, "a", 1))


def held(home: House) -> float:
    query = select(func.coalesce(func.sum(holds.c.usd), 0.0))
    return float(home.store.read_now(lambda connection: connection.execute(query).scalar_one()))
