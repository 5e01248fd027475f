"""Running totals of what was stored since the daemon started, for `/metrics`."""

from collections import Counter
from dataclasses import dataclass, field

from daemon.records.draft import Draft


@dataclass(slots=True)
class Tally:
    """`records` by (scenario, kind, status); tokens by (scenario, upstream, direction) and US dollars by
    (scenario, upstream), as far as they are known.

    No token is counted twice, whatever its dialect reports: `cached` came from the provider's cache, `input`
    is the rest of what was read (what was put into the cache too), `output` what was written.
    """

    records: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    tokens: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    usd: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, draft: Draft) -> None:
        """Count one record, of which is known by now what it used."""
        scenario, upstream = draft.scenario, draft.upstream_name or ""
        self.records[scenario, draft.kind, draft.status] += 1
        if (used := draft.tokens) is not None:
            self.tokens[scenario, upstream, "input"] += used.fresh + used.written
            self.tokens[scenario, upstream, "cached"] += used.cached
            self.tokens[scenario, upstream, "output"] += used.output
        if (cost := draft.usage.cost) is not None:
            self.usd[scenario, upstream] = self.usd.get((scenario, upstream), 0.0) + cost
