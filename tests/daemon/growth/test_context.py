"""What a recipe gets of a step: no gate task, no text of one, and a budget that is real."""

import asyncio
from dataclasses import fields

import pytest

from daemon.evaluation.tasks import is_gate_prompt, leaks
from daemon.growth.caller import Caller
from daemon.growth.context import Context, Powers
from daemon.growth.purse import Purse
from daemon.harness.mutations import check
from reef.errors import Invalid
from reef.runtime import Price
from reef.tasks import Task
from reef.tree import ENTRY_KINDS, HarnessTree, Mutation
from tests.daemon.growth.house import House

GATE = "What is the secret of the gate?"
ANSWER = "an answer of more than twenty characters"


def task(prompt: str, split: str) -> Task:
    message = {"role": "user", "content": prompt}
    return Task(prompt[:5], (message,), "exact", {"expected": ANSWER}, split=split)


TASKS = [task("train me", "train"), task("dev me", "dev"), task(GATE, "gate")]


@pytest.fixture
def context(home: House) -> Context:
    tree = HarnessTree()
    powers = Powers(
        caller=Caller(None),
        purse=Purse(home.store, home.lease("a"), 1, Price(1, 1), 1.0, left=0.25, free=0.5),
        runtime=None,
        model="m",
        episode_slots=asyncio.Semaphore(1),
        check=lambda mutations: check(tree, mutations, kinds_allowed=ENTRY_KINDS, leak_texts=leaks(TASKS)),
        is_gate_prompt=lambda text: is_gate_prompt(TASKS, text),
        stops=lambda: False,
    )
    shown = [one for one in TASKS if one.split != "gate"]
    return Context("a", 1, 7, tree, "c", (), (), frozenset(), 1, shown, powers)


def test_gate_tasks_are_refused(context: Context) -> None:
    assert [one.id for one in context.tasks("train")] == ["train"]
    assert len(context.tasks("dev")) == 1
    with pytest.raises(Invalid, match="may not see the gate tasks"):
        context.tasks("gate")
    with pytest.raises(Invalid):
        asyncio.run(context.evaluate(HarnessTree(), "gate"))
    assert context.gate_tasks == 1


def test_nothing_public_holds_a_gate_text(context: Context) -> None:
    names = [one.name for one in fields(context) if not one.name.startswith("_")]
    told = repr([getattr(context, name) for name in names])
    assert GATE not in told
    assert "what is the secret" not in told.casefold()


def test_a_candidate_with_a_gate_text_is_refused_without_saying_it(context: Context) -> None:
    for text in (GATE, ANSWER):
        (refused,) = context.check([Mutation("create", "x", "rules", {"text": f"Note: {text}"})])
        assert text not in refused.message + refused.hint


def test_the_budget_is_what_the_step_and_the_day_have(context: Context) -> None:
    assert context.budget.usd_left == pytest.approx(0.75)
