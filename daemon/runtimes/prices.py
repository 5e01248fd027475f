"""What tokens cost: the one table that records, budgets and growth read.

It holds what a user wrote, and nothing else: prices change, and a wrong one is worse than none.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from daemon.settings.model import PriceRow, PriceSection, UpstreamSection
from reef.runtime import Price


class PriceTable:
    """`[[price]]` in its order, then each upstream's own `price` for the models that no row names."""

    def __init__(self, rows: Sequence[PriceRow] = (), upstreams: Sequence[UpstreamSection] = ()) -> None:
        self._rows = [(row.upstream, row.model, _price(row)) for row in rows]
        self._own = {section.name: _price(section.price) for section in upstreams if section.price}

    def find(self, upstream: str, *models: str | None) -> Price | None:
        """The price of a model that may go by several names; None where nobody knows it."""
        names = [model for model in models if model]
        for at, pattern, price in self._rows:
            if fnmatchcase(upstream, at) and any(fnmatchcase(name, pattern) for name in names):
                return price
        return self._own.get(upstream)


def _price(section: PriceSection) -> Price:
    return Price(section.input, section.output, section.cached_input, section.cache_write)
