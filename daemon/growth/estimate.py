"""How large the calls of a step can be, read off the texts that it will send. Upper guesses all."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from daemon.evaluation.gate import COST_ALLOWANCE_TOKENS
from daemon.evaluation.scores import EpisodeKey, Plan
from daemon.wire.prefix import Prefix
from reef.feedback import BatchUnit, Message
from reef.runtime import Billed, Price
from reef.tasks import Side

BYTES_PER_TOKEN = 3
"""Tokenizers take more bytes per token, of any script."""
MESSAGE_TOKENS = 8
PROPOSER_CALLS = 3
"""Model calls of a proposer that asks one: an answer and two tries at mending it."""
PROPOSER_OUTPUT_TOKENS = 2048
INSTRUCTION_TOKENS = 2000
"""What a proposer says around the harness and the batch."""


@dataclass(frozen=True, slots=True)
class CallSize:
    """The most tokens that one call can take."""

    input_tokens: int
    output_tokens: int

    def usd(self, price: Price) -> float:
        return price.cost(Billed(self.input_tokens, self.output_tokens))


@dataclass(frozen=True, slots=True)
class Estimate:
    """The most that calls are expected to take. `usd` is None where no price is known."""

    calls: int
    tokens: int
    usd: float | None

    @classmethod
    def of(cls, sizes: Collection[CallSize], price: Price | None) -> "Estimate":
        tokens = sum(size.input_tokens + size.output_tokens for size in sizes)
        return cls(len(sizes), tokens, None if price is None else sum(size.usd(price) for size in sizes))

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
    return CallSize(_tokens(texts, len(messages)) + prefix_tokens(prefix), max_tokens)


def gate_calls(
    plan: Plan, prefixes: Mapping[Side, Prefix | None], max_tokens: int, done: Collection[EpisodeKey]
) -> Iterator[CallSize]:
    """The episodes of a gate that have not finished. A side without a prefix is not made yet: it is the
    current one, grown by as much as a candidate always may."""
    current = prefix_tokens(prefixes["current"])
    in_front: dict[Side, int] = {
        "current": current,
        "candidate": prefix_tokens(prefixes["candidate"])
        if "candidate" in prefixes
        else current + COST_ALLOWANCE_TOKENS,
    }
    for unit in plan.units():
        for task in unit.tasks:
            size = call_size(task.messages, max_tokens=task.max_tokens or max_tokens)
            for side, tokens in in_front.items():
                for repeat in range(plan.repeats):
                    if (task.id, side, repeat) not in done:
                        yield CallSize(size.input_tokens + tokens, size.output_tokens)


def proposer_calls(batch: Sequence[BatchUnit], prefix: Prefix) -> Iterator[CallSize]:
    """A proposer that shows a model the harness and the batch; further tries carry the answers before."""
    shown = sum(
        len(text.encode("utf-8", "replace"))
        for unit in batch
        for exchange in unit.exchanges
        for text in (exchange.prompt, exchange.answer, unit.report.text, unit.report.correction or "")
    )
    tokens = INSTRUCTION_TOKENS + prefix_tokens(prefix) + _tokens(shown, 2)
    for attempt in range(PROPOSER_CALLS):
        yield CallSize(tokens + attempt * PROPOSER_OUTPUT_TOKENS, PROPOSER_OUTPUT_TOKENS)


def prefix_tokens(prefix: Prefix | None) -> int:
    if not prefix:
        return 0
    texts = [prefix.system, *(text for turn in prefix.turns for text in turn)]
    return _tokens(sum(len(text.encode("utf-8", "replace")) for text in texts), len(texts))


def dollars(usd: float) -> str:
    """`$0.25`; small sums keep two digits that say something."""
    return f"${usd:.2f}" if usd >= 0.1 or usd <= 0 else f"${usd:.2g}"


def _tokens(size: int, messages: int) -> int:
    return size // BYTES_PER_TOKEN + 1 + MESSAGE_TOKENS * messages
