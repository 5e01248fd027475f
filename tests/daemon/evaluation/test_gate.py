"""What the gate decides, on which evidence, and what it says of it."""

import random
from itertools import pairwise

import pytest

from daemon.evaluation.gate import UNCHANGED, load_policy
from daemon.evaluation.scores import Decision, Plan, Scored
from daemon.settings.model import GateSection
from reef.errors import ConfigError
from reef.feedback import Usage
from reef.tasks import Side, Task

SIDES: tuple[Side, Side] = ("candidate", "current")


def tasks(count: int, **more: object) -> list[Task]:
    gate = [Task(f"t{number:02}", (), "exact", split="gate", **more) for number in range(count)]
    return [*gate, Task("other", (), "exact", split="train")]


def decide(
    wins: int,
    losses: int,
    ties: int,
    *,
    gate: GateSection | None = None,
    tokens: tuple[int, int] = (100, 100),
    must_pass: str = "",
) -> tuple[Decision, int]:
    """The decision on units that come in this order: wins, losses, ties; and at which look it fell."""
    policy = load_policy(gate or GateSection())
    total = wins + losses + ties
    plan = policy.plan([*tasks(total)], seed=1, copies=True)
    scores = [(1.0, 0.0)] * wins + [(0.0, 1.0)] * losses + [(1.0, 1.0)] * ties
    if must_pass:
        units = [
            type(unit)(
                unit.name, tuple(Task(t.id, (), "exact", split="gate", must_pass=True) for t in unit.tasks)
            )
            if must_pass == str(number)
            else unit
            for number, unit in enumerate(plan.units())
        ]
        cuts = [0, *(sum(len(group) for group in plan.looks[: k + 1]) for k in range(len(plan.looks)))]
        plan = Plan(tuple(tuple(units[a:b]) for a, b in pairwise(cuts)), plan.repeats)
    results = [
        Scored(unit.tasks[0].id, side, 0, score, usage=Usage(spent - 10, 10))
        for unit, pair in zip(plan.units(), scores[: len(plan.units())], strict=True)
        for side, score, spent in zip(SIDES, pair, tokens, strict=True)
    ]
    for look in range(len(plan.looks) + 1):
        if (decision := policy.decide(plan, results, look)) is not None:
            return decision, look
    raise AssertionError("no decision")


def test_a_clear_winner_stops_early() -> None:
    decision, look = decide(12, 0, 0)
    assert (decision.outcome, look) == ("select", 2)
    assert decision.sentence == "better: 8 wins, 0 losses, 0 ties (8 wins needed), mean score 0.00 to 1.00"
    assert decision.metrics["evidence"]["looks"] == [
        {"units": 4, "wins": 4, "losses": 0, "ties": 0, "wins_needed": None},
        {"units": 8, "wins": 8, "losses": 0, "ties": 0, "wins_needed": 8},
    ]
    assert decision.metrics["wins"] == 8
    assert len(decision.metrics["candidate_scores"]) == 8


def test_no_change_is_a_rejection_that_says_so() -> None:
    decision, look = decide(0, 0, 12)
    assert (decision.outcome, decision.sentence) == ("reject", UNCHANGED)
    assert look == 2  # four units more could not select


def test_hopeless_stops_early() -> None:
    decision, look = decide(0, 6, 6)
    assert (decision.outcome, look) == ("reject", 1)
    assert decide(2, 4, 0)[0].outcome == "reject"


def test_not_enough_evidence() -> None:
    decision, _ = decide(4, 1, 7)
    assert decision.outcome == "inconclusive"
    assert decision.metrics["evidence"]["units_needed"] > 12
    assert "would decide" in decision.sentence


def test_fewer_than_five_decided_units_never_select() -> None:
    wide = GateSection(budget_pairs=60)
    assert decide(4, 0, 40, gate=wide)[0].outcome == "inconclusive"
    assert decide(5, 0, 40, gate=wide)[0].outcome == "select"


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_tasks_wait_for_a_person(count: int) -> None:
    policy = load_policy(GateSection())
    plan = policy.plan(tasks(count), seed=0, copies=True)
    decision = policy.decide(plan, [], 0)
    assert decision is not None
    assert (decision.outcome, decision.for_person, plan.units()) == ("skip", True, ())


def test_guards() -> None:
    assert decide(12, 0, 0, tokens=(5000, 1000))[0].outcome == "reject"
    assert decide(12, 0, 0, tokens=(400, 30))[0].outcome == "select"
    lost, look = decide(11, 1, 0, must_pass="11")
    assert (lost.outcome, look) == ("select", 2)
    decision, look = decide(0, 1, 11, must_pass="0")
    assert (decision.outcome, look) == ("reject", 1)
    assert "must pass" in decision.sentence
    small = decide(6, 0, 54, gate=GateSection(min_gain=0.2, budget_pairs=60))[0]
    assert small.outcome == "reject"
    assert "mean gain" in small.sentence


def test_plan() -> None:
    policy = load_policy(GateSection(budget_pairs=30))
    sizes = [len(look) for look in policy.plan(tasks(8), seed=3, copies=False).looks]
    assert sizes == [3, 3, 2]
    assert policy.plan(tasks(8), seed=3, copies=False).repeats == 3
    assert policy.plan(tasks(5), seed=3, copies=False).repeats == 5
    assert policy.plan(tasks(8), seed=3, copies=True).repeats == 1
    drawn = policy.plan(
        [*tasks(50), Task("vital", (), "exact", split="gate", must_pass=True)], seed=3, copies=False
    )
    assert (len(drawn.units()), drawn.repeats) == (30, 1)
    assert "vital" in {unit.name for unit in drawn.units()}
    assert policy.plan(tasks(8), seed=3, copies=True) == policy.plan(tasks(8)[::-1], seed=3, copies=True)
    assert policy.plan(tasks(8), seed=3, copies=True) != policy.plan(tasks(8), seed=4, copies=True)
    assert len(policy.plan(tasks(8, group="one"), seed=3, copies=True).units()) == 0


def test_repeats_are_averaged_not_counted() -> None:
    policy = load_policy(GateSection(budget_pairs=25))
    plan = policy.plan(tasks(5), seed=0, copies=False)
    results = [
        Scored(unit.tasks[0].id, side, repeat, float(repeat < good))
        for unit in plan.units()
        for side, good in zip(SIDES, (3, 2), strict=True)
        for repeat in range(plan.repeats)
    ]
    decision = policy.decide(plan, results, 3)
    assert decision is not None
    assert (decision.outcome, decision.metrics["wins"]) == ("select", 5)
    assert decision.metrics["evidence"]["gain"] == pytest.approx(0.2)


def simulate(candidate: float, current: float, count: int, budget: int, seed: int) -> str:
    chance = random.Random(seed)
    policy = load_policy(GateSection(budget_pairs=budget))
    plan = policy.plan(tasks(count), seed=seed, copies=False)
    results = [
        Scored(unit.tasks[0].id, side, repeat, float(chance.random() < p))
        for unit in plan.units()
        for side, p in zip(SIDES, (candidate, current), strict=True)
        for repeat in range(plan.repeats)
    ]
    decisions = (policy.decide(plan, results, look) for look in range(len(plan.looks) + 1))
    return next(decision.outcome for decision in decisions if decision)


def test_useless_candidates_are_rarely_selected_and_good_ones_mostly() -> None:
    useless = [simulate(0.5, 0.5, 12, 60, seed) for seed in range(400)]
    assert useless.count("select") / 400 <= 0.05
    good = [simulate(0.95, 0.5, 12, 60, seed) for seed in range(100)]
    assert good.count("select") >= 90


@pytest.mark.parametrize(
    ("policy", "wins", "losses", "outcome"),
    [
        ("score_comparison", 1, 0, "select"),
        ("score_comparison", 1, 1, "reject"),
        ("score_comparison", 0, 0, "reject"),
        ("floor", 0, 0, "select"),
        ("floor", 0, 1, "reject"),
        ("always", 0, 5, "select"),
        ("sequential", 2, 0, "inconclusive"),
        ("daemon.evaluation.gate:Floor", 0, 0, "select"),
    ],
)
def test_policies(policy: str, wins: int, losses: int, outcome: str) -> None:
    decision, _ = decide(wins, losses, 6 - wins - losses, gate=GateSection(policy=policy))
    assert decision.outcome == outcome
    assert decision.metrics["selection"] == {
        "policy": policy,
        "outcome": outcome,
        "reason": decision.sentence,
    }


@pytest.mark.parametrize("policy", ["sequentiel", "nope:Class", "reef.tasks:Task"])
def test_unknown_policies(policy: str) -> None:
    with pytest.raises(ConfigError):
        load_policy(GateSection(policy=policy))
