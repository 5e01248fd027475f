"""The sign test keeps its promise: useless candidates are selected with probability alpha at most."""

from itertools import product
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.evaluation.sign_test import LOOKS, can_still_select, units_needed, wins_needed


@pytest.mark.parametrize(
    ("units", "needed"),
    [
        (5, (None, None, 5)),
        (6, (None, None, 6)),
        (8, (None, 6, 7)),
        (12, (None, 8, 10)),
        (20, (None, 12, 15)),
        (40, (13, 20, 26)),
    ],
)
def test_wins_needed_without_ties(units: int, needed: tuple[int | None, ...]) -> None:
    assert wins_needed(tuple(ceil(units * look / LOOKS) for look in (1, 2, 3)), LOOKS) == needed


@settings(max_examples=40)
@given(st.tuples(*[st.integers(0, 5)] * 3), st.sampled_from([0.01, 0.05, 0.2]))
def test_alpha_holds_for_any_ties(new: tuple[int, int, int], alpha: float) -> None:
    """Exact, and without the test's own arithmetic: every sequence of wins and losses is tried."""
    ends = (new[0], new[0] + new[1], sum(new))
    needed = wins_needed(ends, LOOKS, alpha)
    selected = sum(
        any(need is not None and sum(signs[:end]) >= need for end, need in zip(ends, needed, strict=True))
        for signs in product((0, 1), repeat=ends[-1])
    )
    assert selected <= alpha * 2 ** ends[-1] + 1e-6


@settings(max_examples=100)
@given(st.lists(st.integers(0, 27), min_size=3, max_size=3))
def test_alpha_holds_for_many_units(new: list[int]) -> None:
    ends = tuple(sum(new[: look + 1]) for look in range(3))
    paths, crossed = {0: 1.0}, 0.0
    for more, need in zip(new, wins_needed(ends, LOOKS), strict=True):
        for _ in range(more):  # one unit at a time: each is a win with probability 1/2
            step: dict[int, float] = {}
            for wins, chance in paths.items():
                for won in (wins, wins + 1):
                    step[won] = step.get(won, 0.0) + chance / 2
            paths = step
        if need is not None:
            crossed += sum(chance for wins, chance in paths.items() if wins >= need)
            paths = {wins: chance for wins, chance in paths.items() if wins < need}
    assert crossed <= 0.05 + 1e-9


def test_can_still_select() -> None:
    assert can_still_select(0, (0,), (4, 4), LOOKS, 0.05)
    assert not can_still_select(0, (4,), (4, 4), LOOKS, 0.05)
    assert can_still_select(4, (4,), (4, 4), LOOKS, 0.05)
    assert not can_still_select(5, (8,), (2,), LOOKS, 0.05)
    assert not can_still_select(5, (5, 5), (), LOOKS, 0.05)


def test_units_needed() -> None:
    assert units_needed(5, 5, 12, 0.05) is None
    assert units_needed(4, 0, 5, 0.05) == 7
    few, many = units_needed(8, 2, 12, 0.05), units_needed(7, 5, 12, 0.05)
    assert few is not None
    assert many is not None
    assert 12 < few < many
