"""How large the calls of a step can be, read off the texts that it will send, before anything is asked.

There are two numbers. What a step is expected to take, and shown to take, goes by three bytes to a token:
ordinary text of any script has more, so it is an upper guess. What a call holds while it runs goes by one
byte to a token, which is a bound: digits, base64 and emoji have fewer than three, no tokenizer makes more
tokens than there are bytes. With the bound in the estimate too, a small daily limit would let nothing run.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from daemon.evaluation.gate import COST_ALLOWANCE_TOKENS
from daemon.evaluation.scores import EpisodeKey, Plan
from daemon.wire.prefix import Prefix
from reef.feedback import BatchUnit, Message
from reef.money import dollars
from reef.runtime import Billed, Price
from reef.tasks import Side

BYTES_PER_TOKEN = 3
"""Of ordinary text, at least."""
MESSAGE_TOKENS = 8
"""What stands around a message, at most."""
PROPOSER_CALLS = 3
"""Model calls of a proposer that asks one: an answer and two tries at mending it."""
PROPOSER_OUTPUT_TOKENS = 2048
INSTRUCTION_TOKENS = 2000
"""What a proposer says around the harness and the batch."""


@dataclass(frozen=True, slots=True)
class CallSize:
    """One call: bytes of text, tokens that come on top of them, and the most tokens of an answer."""

    text_bytes: int
    extra_tokens: int
    output_tokens: int

    @property
    def input_tokens(self) -> int:
        """As many as are expected, guessed high."""
        return -(-self.text_bytes // BYTES_PER_TOKEN) + self.extra_tokens

    @property
    def most_input_tokens(self) -> int:
        """As many as it can be."""
        return self.text_bytes + self.extra_tokens

    def usd(self, price: Price) -> float:
        """US dollars that it is expected to cost, guessed high."""
        return price.cost(Billed(self.input_tokens, self.output_tokens))

    def most_usd(self, price: Price) -> float:
        """US dollars that it can cost: what it holds while it runs."""
        return price.cost(Billed(self.most_input_tokens, self.output_tokens))


@dataclass(frozen=True, slots=True)
class Estimate:
    """The most that calls are expected to take. `usd` is None where no price is known; with it the last call
    too can hold the most that it can cost."""

    calls: int
    tokens: int
    usd: float | None

    @classmethod
    def of(cls, sizes: Collection[CallSize], price: Price | None) -> "Estimate":
        tokens = sum(size.input_tokens + size.output_tokens for size in sizes)
        if price is None:
            return cls(len(sizes), tokens, None)
        usd = sum(size.usd(price) for size in sizes)
        return cls(
            len(sizes),
            tokens,
            usd + max((size.most_usd(price) - size.usd(price) for size in sizes), default=0.0),
        )

    def sentence(self) -> str:
        money = "no known price" if self.usd is None else f"at most about {dollars(self.usd)}"
        return f"{self.calls} model calls, about {self.tokens:,} tokens, {money}"


def call_size(
    messages: Sequence[Message],
    *,
    max_tokens: int,
    prefix: Prefix | None = None,
    schema: Mapping[str, Any] | None = None,
) -> CallSize:
    """One call with these messages, and what stands in front of them."""
    texts = len(orjson.dumps(list(messages))) + (len(orjson.dumps(schema)) if schema else 0)
    in_front, turns = _prefix(prefix)
    return CallSize(texts + in_front, MESSAGE_TOKENS * (len(messages) + turns), max_tokens)


def gate_calls(
    plan: Plan, prefixes: Mapping[Side, Prefix | None], max_tokens: int, done: Collection[EpisodeKey]
) -> Iterator[CallSize]:
    """The episodes of a gate that have not finished. A side without a prefix is not made yet: it is the
    current one, grown by as much as a candidate always may."""
    grown = 0 if "candidate" in prefixes else COST_ALLOWANCE_TOKENS
    sides: tuple[tuple[Side, Prefix | None, int], ...] = (
        ("current", prefixes["current"], 0),
        ("candidate", prefixes.get("candidate", prefixes["current"]), grown),
    )
    for unit in plan.units():
        for task in unit.tasks:
            for side, prefix, more in sides:
                size = call_size(task.messages, max_tokens=task.max_tokens or max_tokens, prefix=prefix)
                for repeat in range(plan.repeats):
                    if (task.id, side, repeat) not in done:
                        yield replace(size, extra_tokens=size.extra_tokens + more)


def proposer_calls(batch: Sequence[BatchUnit], prefix: Prefix) -> Iterator[CallSize]:
    """A proposer that shows a model the harness and the batch; further tries carry the answers before."""
    shown = sum(
        len(text.encode("utf-8", "replace"))
        for unit in batch
        for exchange in unit.exchanges
        for text in (exchange.prompt, exchange.answer, unit.report.text, unit.report.correction or "")
    )
    in_front, turns = _prefix(prefix)
    extra = INSTRUCTION_TOKENS + MESSAGE_TOKENS * (2 + turns)
    for attempt in range(PROPOSER_CALLS):
        yield CallSize(shown + in_front, extra + attempt * PROPOSER_OUTPUT_TOKENS, PROPOSER_OUTPUT_TOKENS)


def _prefix(prefix: Prefix | None) -> tuple[int, int]:
    """Bytes and number of the texts that stand in front."""
    if not prefix:
        return 0, 0
    texts = [prefix.system, *(text for turn in prefix.turns for text in turn)]
    return sum(len(text.encode("utf-8", "replace")) for text in texts), len(texts)
