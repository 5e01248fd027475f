"""Running totals of what was stored since the daemon started, for `/metrics`."""

from collections import Counter
from dataclasses import dataclass, field

from reef.feedback import Usage


@dataclass(slots=True)
class Tally:
    """`records` by (scenario, kind, status); tokens by (scenario, upstream, direction) and US dollars by
    (scenario, upstream), as far as they are known."""

    records: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    tokens: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    usd: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, scenario: str, kind: str, status: str, upstream: str | None, usage: Usage) -> None:
        """Count one record."""
        name = upstream or ""
        self.records[scenario, kind, status] += 1
        counts = {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cached": usage.cached_tokens,
        }
        for direction, count in counts.items():
            if count is not None:
                self.tokens[scenario, name, direction] += count
        if usage.cost is not None:
            self.usd[scenario, name] = self.usd.get((scenario, name), 0.0) + usage.cost
