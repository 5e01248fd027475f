"""The group-sequential exact sign test: how many wins select at each look, and what else is possible.

Pure arithmetic on counts. Who counts what is `gate.py`'s business.
"""

from math import ceil, comb, sqrt
from statistics import NormalDist

LOOKS = 3
MIN_DECIDED = 5
"""Fewer decided units never select."""

_POWER = 0.8


def wins_needed(decided: tuple[int, ...], looks: int, alpha: float = 0.05) -> tuple[int | None, ...]:
    """Wins that select at each look so far; None where no count can.

    `decided[k]` is wins + losses at look k+1. At look k at most alpha (k/looks)^2 may have been spent;
    what a look cannot spend is left to the next.
    """
    alive, spent, before = {0: 1.0}, 0.0, 0
    out: list[int | None] = []
    for k, m in enumerate(decided, 1):
        alive, before = _grown(alive, m - before), m
        need, tail = None, 0.0
        for wins in range(m, m // 2, -1):
            tail += alive.get(wins, 0.0)
            if tail > alpha * (k / looks) ** 2 - spent + 1e-12:
                break
            need = wins if m >= MIN_DECIDED else None
        if need is not None:
            spent += sum(p for wins, p in alive.items() if wins >= need)
            alive = {wins: p for wins, p in alive.items() if wins < need}
        out.append(need)
    return tuple(out)


def can_still_select(
    wins: int, decided: tuple[int, ...], left: tuple[int, ...], looks: int, alpha: float
) -> bool:
    """Whether any count of wins in the units left would select at a later look.

    `decided` and `wins` are those so far; `left[j]` is how many units the j-th look to come adds. Units left
    that are no wins count as ties here: a loss never helps.
    """
    if not left:
        return False
    for new in range(left[0], -1, -1):
        after = (*decided, decided[-1] + new)
        need = wins_needed(after, looks, alpha)[-1]
        if need is not None and wins + new >= need:
            return True
        if can_still_select(wins + new, after, left[1:], looks, alpha):
            return True
    return False


def units_needed(wins: int, losses: int, units: int, alpha: float) -> int | None:
    """About how many units would decide, were wins, losses and ties to go on as they did.

    From the usual normal approximation at 80 % power; None where wins do not lead.
    """
    decided = wins + losses
    if wins <= losses:
        return None
    rate = wins / decided
    normal = NormalDist()
    spread = normal.inv_cdf(1 - alpha) / 2 + normal.inv_cdf(_POWER) * sqrt(rate * (1 - rate))
    enough = max(MIN_DECIDED, ceil((spread / (rate - 0.5)) ** 2))
    return max(units + 1, ceil(enough * units / decided))


def _grown(alive: dict[int, float], step: int) -> dict[int, float]:
    """The distribution of wins after `step` more decided units, were each a win with probability 1/2."""
    chances = [comb(step, more) / 2**step for more in range(step + 1)]
    grown: dict[int, float] = {}
    for wins, p in alive.items():
        for more, chance in enumerate(chances):
            grown[wins + more] = grown.get(wins + more, 0.0) + p * chance
    return grown
