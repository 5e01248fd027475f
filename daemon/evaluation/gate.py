"""The gate: policies that plan a comparison and decide on its results. Pure; running it is `comparison.py`.

To add one: a subclass of `Policy`, named in the configuration as `module:Class`.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import pairwise
from math import ceil
from typing import Any, ClassVar

from daemon.evaluation.scores import Decision, Outcome, Plan, Scored, Tally, Unit
from daemon.evaluation.sign_test import LOOKS, MIN_DECIDED, can_still_select, units_needed, wins_needed
from daemon.settings.model import GateSection
from reef.errors import ConfigError
from reef.tasks import Task

MAX_REPEATS = 5
COST_ALLOWANCE_TOKENS = 512
"""Tokens per episode by which a candidate may always grow: a sentence more doubles a ten-word prompt."""

UNCHANGED = "no gate task changed: the candidate made no difference on any task"


class Policy(ABC):
    """Plans which units run, and decides after each look."""

    name: ClassVar[str] = ""

    def __init__(self, settings: GateSection) -> None:
        self.settings = settings

    def plan(self, tasks: Sequence[Task], *, seed: int, copies: bool) -> Plan:
        """Which gate tasks run at which look. `copies`: a repeated run would give the same answer."""
        units = draw_units(tasks, self.settings.budget_pairs, seed)
        return Plan(
            (tuple(units),) if units else (), repeats_of(len(units), self.settings.budget_pairs, copies)
        )

    @abstractmethod
    def decide(self, plan: Plan, results: Iterable[Scored], look: int) -> Decision | None:
        """The decision after `look` looks (0: before anything ran), or None to go on with the next one."""

    def _decision(
        self,
        tally: Tally,
        outcome: Outcome,
        reason: str,
        *,
        needed: Sequence[int | None] = (),
        more: int | None = None,
    ) -> Decision:
        wins, losses, ties = tally.counts()
        looks = []
        for number in range(1, tally.look + 1):
            won, lost, tied = tally.counts(number)
            need = needed[number - 1] if needed else None
            units = won + lost + tied
            looks.append({"units": units, "wins": won, "losses": lost, "ties": tied, "wins_needed": need})
        grouped = any(len(unit.tasks) > 1 for unit in tally.plan.units())
        metrics: dict[str, Any] = {
            "selection": {"policy": self.settings.policy, "outcome": outcome, "reason": reason},
            "wins": wins,
            "losses": losses,
            "ties": ties,
            "candidate_scores": tally.scores("candidate"),
            "current_scores": tally.scores("current"),
            "evidence": {
                "unit": "group" if grouped else "task",
                "units": len(tally.units),
                "repeats": tally.plan.repeats,
                "looks": looks,
                "gain": tally.gain if tally.units else None,
                "units_needed": more,
            },
        }
        return Decision(outcome, reason, metrics, for_person=outcome == "skip")

    def _guard(self, tally: Tally) -> str:
        """Why a candidate that scores better is still not good enough, or an empty string."""
        if tally.lost_must_pass:
            return f"it does worse on `{tally.lost_must_pass[0]}`, which must pass"
        if tally.gain < self.settings.min_gain - 1e-9:
            return f"the mean gain is {tally.gain:+.3f}, below {self.settings.min_gain:g}"
        candidate, current = tally.mean_tokens("candidate"), tally.mean_tokens("current")
        if candidate is None or current is None:
            return ""
        allowed = max(current * self.settings.max_cost_ratio, current + COST_ALLOWANCE_TOKENS)
        if candidate > allowed:
            return (
                f"it takes {candidate:.0f} tokens an episode, {current:.0f} before; {allowed:.0f} are allowed"
            )
        return ""


class Sequential(Policy):
    """A group-sequential exact sign test over the units; see `sign_test`."""

    name = "sequential"

    def plan(self, tasks: Sequence[Task], *, seed: int, copies: bool) -> Plan:
        units = draw_units(tasks, self.settings.budget_pairs, seed)
        if len(units) < MIN_DECIDED:
            return Plan(())
        ends = [0, *(ceil(len(units) * look / LOOKS) for look in range(1, LOOKS + 1))]
        looks = tuple(tuple(units[start:end]) for start, end in pairwise(ends))
        return Plan(looks, repeats_of(len(units), self.settings.budget_pairs, copies))

    def decide(self, plan: Plan, results: Iterable[Scored], look: int) -> Decision | None:
        if not plan.looks:
            reason = f"waits for a person: an automatic gate needs at least {MIN_DECIDED} gate tasks"
            return self._decision(Tally(plan, (), 0, 0.0), "skip", reason)
        if look == 0:
            return None
        tally, alpha = Tally(plan, results, look, self.settings.tie), self.settings.alpha
        counts = [tally.counts(number) for number in range(1, look + 1)]
        decided = tuple(wins + losses for wins, losses, _ in counts)
        needed = wins_needed(decided, LOOKS, alpha)
        wins, losses, ties = counts[-1]
        need, guard = needed[-1], self._guard(tally)
        won = need is not None and wins >= need
        score = f"{_count(wins, 'win')}, {_count(losses, 'loss')}, {_count(ties, 'tie')}"
        if won and not guard:
            means = f"{tally.mean('current'):.2f} to {tally.mean('candidate'):.2f}"
            reason = f"better: {score} ({need} wins needed), mean score {means}"
            return self._decision(tally, "select", reason, needed=needed)
        left = tuple(len(group) for group in plan.looks[look:])
        possible = not tally.lost_must_pass and (won or can_still_select(wins, decided, left, LOOKS, alpha))
        if left and possible:
            return None
        if tally.lost_must_pass or (wins > losses and guard):
            return self._decision(tally, "reject", f"not good enough: {guard} ({score})", needed=needed)
        if wins <= losses:
            reason = UNCHANGED if wins == losses == 0 else f"not better: {score}"
            return self._decision(tally, "reject", reason, needed=needed)
        more = units_needed(wins, losses, len(tally.units), alpha)
        reason = f"not enough evidence: {score}; about {more} gate tasks would decide"
        return self._decision(tally, "inconclusive", reason, needed=needed, more=more)


class ScoreComparison(Policy):
    """The candidate's mean is above the current one's by more than `min_gain`. No claim about chance."""

    name = "score_comparison"

    def decide(self, plan: Plan, results: Iterable[Scored], look: int) -> Decision | None:
        if not plan.looks:
            return self._decision(
                Tally(plan, (), 0, 0.0), "skip", "waits for a person: there is no gate task"
            )
        if look < len(plan.looks):
            return None
        tally = Tally(plan, results, look, self.settings.tie)
        means = f"mean score {tally.mean('current'):.3f} to {tally.mean('candidate'):.3f}"
        if not self._passes(tally):
            return self._decision(tally, "reject", f"not better: {means}")
        if guard := self._objection(tally):
            return self._decision(tally, "reject", f"not good enough: {guard}")
        return self._decision(tally, "select", means)

    def _passes(self, tally: Tally) -> bool:
        return tally.gain > self.settings.min_gain

    def _objection(self, tally: Tally) -> str:
        return self._guard(tally)


class Floor(ScoreComparison):
    """The candidate's mean does not fall below the current one's, and no `must_pass` task is lost."""

    name = "floor"

    def _passes(self, tally: Tally) -> bool:
        return tally.gain >= -1e-9

    def _objection(self, tally: Tally) -> str:
        return self._guard(tally) if tally.lost_must_pass else ""


class Always(Policy):
    """Selects whatever is proposed and runs nothing."""

    name = "always"

    def plan(self, tasks: Sequence[Task], *, seed: int, copies: bool) -> Plan:
        return Plan(())

    def decide(self, plan: Plan, results: Iterable[Scored], look: int) -> Decision | None:
        return self._decision(Tally(plan, (), 0, 0.0), "select", "the policy `always` asks for no evidence")


POLICIES: dict[str, type[Policy]] = {one.name: one for one in (Sequential, ScoreComparison, Floor, Always)}


def load_policy(settings: GateSection) -> Policy:
    """The policy that `settings.policy` names: a built-in one, or `module:Class`.

    Raises:
        ConfigError: there is none of that name.
    """
    name = settings.policy
    module, colon, attribute = name.partition(":")
    if not colon:
        if name not in POLICIES:
            raise ConfigError(
                f"there is no gate policy `{name}`", hint=f"there are: {', '.join(POLICIES)}, or module:Class"
            )
        return POLICIES[name](settings)
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"the gate policy `{name}` cannot be loaded: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise ConfigError(f"`{name}` is not a gate policy", hint="it must be a subclass of Policy")
    return found(settings)


def draw_units(tasks: Iterable[Task], budget: int, seed: int) -> list[Unit]:
    """The gate units in a random order made of `seed`: at most `budget`, `must_pass` tasks first of all."""
    groups: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda one: one.id):
        if task.split == "gate":
            groups.setdefault(task.unit, []).append(task)
    units = [Unit(name, tuple(members)) for name, members in sorted(groups.items())]
    random.Random(seed).shuffle(units)  # noqa: S311 - an order, not a secret
    if len(units) <= budget:
        return units
    must = [unit for unit in units if any(task.must_pass for task in unit.tasks)]
    drawn = {unit.name for unit in [*must, *(unit for unit in units if unit not in must)][:budget]}
    return [unit for unit in units if unit.name in drawn]


def repeats_of(units: int, budget: int, copies: bool) -> int:
    """How often each task runs on each side: once where a repeat would be a copy."""
    return 1 if copies or not units else min(MAX_REPEATS, max(1, budget // units))


def _count(number: int, word: str) -> str:
    plural = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"
