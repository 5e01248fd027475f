"""Estimates are upper guesses, read off the texts."""

from hypothesis import given
from hypothesis import strategies as st

from daemon.evaluation.scores import Plan, Unit
from daemon.growth.estimate import CallSize, Estimate, call_size, gate_calls
from daemon.wire.prefix import Prefix
from reef.runtime import Price
from reef.tasks import Task


def task(name: str, text: str = "q", max_tokens: int | None = None) -> Task:
    message = {"role": "user", "content": text}
    return Task(name, (message,), "exact", {}, split="gate", max_tokens=max_tokens)


def plan(*tasks: Task, repeats: int = 1) -> Plan:
    return Plan((tuple(Unit(one.id, (one,)) for one in tasks),), repeats)


@given(st.text(max_size=300), st.text(max_size=300))
def test_a_longer_text_is_never_guessed_smaller(text: str, more: str) -> None:
    def size(content: str) -> CallSize:
        return call_size([{"role": "user", "content": content}], max_tokens=1)

    there = len(text.encode("utf-8", "surrogatepass"))
    assert size(text + more).input_tokens >= size(text).input_tokens > there // 3
    assert size(text + more).most_input_tokens >= size(text).most_input_tokens > there


def test_what_a_call_holds_is_a_bound_for_text_that_tokenizers_cut_small() -> None:
    digits = call_size([{"role": "user", "content": "7" * 900}], max_tokens=1)
    assert digits.most_input_tokens > 900 > digits.input_tokens > 300


def test_both_sides_carry_their_prefix() -> None:
    before, after = Prefix("a" * 300), Prefix("a" * 3000, (("q" * 300, "a" * 300),))
    made = list(gate_calls(plan(task("t")), {"current": before, "candidate": after}, 50, ()))
    assert made[1].text_bytes - made[0].text_bytes == 3000 + 600 - 300
    assert made[1].extra_tokens > made[0].extra_tokens
    unmade = list(gate_calls(plan(task("t")), {"current": before}, 50, ()))
    assert unmade[1].input_tokens == unmade[0].input_tokens + 512


def test_only_what_is_missing_is_counted() -> None:
    tasks = plan(task("t"), task("u", max_tokens=7), repeats=2)
    prefixes = {"current": None, "candidate": None}
    done = {("t", "current", 0), ("u", "candidate", 1)}
    sizes = list(gate_calls(tasks, prefixes, 50, done))
    assert len(sizes) == 6
    assert sorted(size.output_tokens for size in sizes) == [7, 7, 7, 50, 50, 50]


def test_the_sentence() -> None:
    sizes = [CallSize(0, 1000, 100), CallSize(0, 900, 0)]
    assert (
        Estimate.of(sizes, Price(1.0, 10.0)).sentence()
        == "2 model calls, about 2,000 tokens, at most about $0.0029"
    )
    assert Estimate.of(sizes, None).sentence().endswith("no known price")


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 200), st.integers(0, 500)), min_size=1))
def test_with_what_is_estimated_the_last_call_can_hold_its_most(sizes: list[tuple[int, int, int]]) -> None:
    price = Price(3.0, 15.0)
    calls = [CallSize(*size) for size in sizes]
    left = Estimate.of(calls, price).usd
    assert left is not None
    for call in calls:
        assert call.most_usd(price) <= left + 1e-9
        left -= call.usd(price)
