"""One step, from its batch to a decision. Each state's result is written before the next begins."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from sqlalchemy import RowMapping

from daemon.evaluation.comparison import Stopped, compare
from daemon.evaluation.gate import load_policy
from daemon.evaluation.scores import Decision
from daemon.evaluation.tasks import leaks
from daemon.growth import budget, candidate, steps
from daemon.growth.context import Context
from daemon.growth.episodes import ChatEpisodes, EpisodeRows, copy_key
from daemon.growth.lease import Lease, LostLease
from daemon.growth.ledger import Ledger
from daemon.growth.rooms import Progress, Rooms
from daemon.harness.adapters import adapter
from daemon.harness.render import chat_prefix
from daemon.records.batches import load_batch
from daemon.releases.history import Publication
from daemon.serving.scenarios import Scenario
from daemon.serving.served import Served
from daemon.store.codec import load
from reef.errors import Conflict, ReefError, Refused, Unavailable
from reef.recipe import Budget, Recipe, turned_down
from reef.tasks import Side, Task
from reef.tree import HarnessTree, Proposal

log = logging.getLogger("reef.growth")

MAX_RESTARTS = 3
APPROVED = "approved"
PROPOSER_CALLS = 3
"""Model calls assumed for a proposer that asks one: an answer and two tries at mending it."""


@dataclass(slots=True)
class StepRun:
    """Runs one step of one scenario. `run` returns when it is done or waits for a person."""

    rooms: Rooms
    scenario: Scenario
    lease: Lease
    step: int
    stopping: Callable[[], bool]
    _book: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self._book = Ledger(self.rooms, self.scenario, self.lease, self.step)

    @property
    def seed(self) -> int:
        name = f"{self.scenario.name}:{self.step}".encode()
        return int.from_bytes(blake2b(name, digest_size=8).digest())

    async def run(self) -> None:
        for _ in range(MAX_RESTARTS):
            try:
                await self._go_on()
                return
            except LostLease:
                raise
            except Conflict as error:
                await self._book.start_over(error)
            except Stopped:
                if self._is_cancelled():
                    self.rooms.cancelled.discard((self.scenario.name, self.step))
                    await self._book.finish("skip", "cancelled by a person")
                return
            except ReefError as error:
                if (await self._book.row())["state"] == "committing" and isinstance(error, Unavailable):
                    raise  # it is decided: the worker tries again until it is published
                await self._book.finish("error", f"it could not be finished: {error.message}", error=error)
                return
            except Exception as error:
                log.exception("step %s of %s failed", self.step, self.scenario.name)
                bug = ReefError(f"{type(error).__name__}: {error}", hint="see `reef logs`")
                await self._book.finish("error", "it failed on a bug, of Reef or of a plug-in", error=bug)
                return
        await self._book.finish("error", "the served release kept changing while this step ran")

    def _is_cancelled(self) -> bool:
        return (self.scenario.name, self.step) in self.rooms.cancelled

    def _stops(self) -> bool:
        return self.stopping() or self._is_cancelled()

    def _go_no_further(self) -> None:
        if self._stops():
            raise Stopped("the step was cancelled")

    async def _go_on(self) -> None:
        row = await self._book.row()
        if row["state"] == "committing":
            await self._commit(row)
            return
        self._go_no_further()
        recipe = self.rooms.recipe_of(self.scenario.name)
        tasks = await asyncio.to_thread(self.rooms.tasks_of, self.scenario.name)
        base = await self.rooms.scenarios.tree(row["base_content_id"])
        if row["state"] == "queued":
            if not await self._affordable(row, recipe, tasks):
                return
            await self._book.save("proposing")
        if row["state"] in ("queued", "proposing") and not await self._propose(row, recipe, tasks, base):
            return
        row = await self._book.row()
        decision = await self._evaluate(row, tasks)
        await self._decide(row, decision)

    # -- queued

    async def _affordable(self, row: RowMapping, recipe: Recipe, tasks: Sequence[Task]) -> bool:
        """Whether the step may spend what it is expected to; else it waits for a person."""
        gate = self.scenario.section.gate
        plan = load_policy(gate).plan(tasks, seed=self.seed, copies=gate.temperature == 0)
        episodes = 2 * plan.repeats * sum(len(unit.tasks) for unit in plan.units())
        calls = episodes + (PROPOSER_CALLS if recipe.needs_model() else 0)
        price = self.rooms.router.own(self.scenario.section.model).price if calls else None
        expected = budget.estimate(calls=calls, input_tokens=None, max_tokens=gate.max_tokens, price=price)
        await self._book.save("queued", notes=[f"expected: {expected.sentence()}"] if calls else [])
        if expected.usd is None or row["waits_for"] == APPROVED:
            return True
        left = self.rooms.limits.usd_per_day - await self.rooms.store.read(budget.spent_today)
        if expected.usd <= left:
            return True
        sentence = (
            f"it may cost ${expected.usd:.2f} and ${max(left, 0):.2f} of today's budget is left; "
            f"`reef step {self.step} -s {self.scenario.name} --run` runs it"
        )
        await self._book.save("waiting", waits_for="money", decision=sentence)
        return False

    # -- proposing

    async def _propose(
        self, row: RowMapping, recipe: Recipe, tasks: Sequence[Task], base: HarnessTree
    ) -> bool:
        context = await self._context(row, tasks, base)
        try:
            proposal = await recipe.propose(context)
        except Refused as error:
            why = {"rule": error.rule, "message": error.message}
            await self._book.finish("reject", f"refused: {error.message}", refused=why, notes=context.notes)
            return False
        self._go_no_further()
        notes = load(row["notes"], []) + context.notes
        if proposal is None:
            await self._book.finish("skip", "this batch teaches nothing new", notes=notes)
            return False
        told: dict[str, Any] = {
            "proposer": proposal.proposer,
            "mutations": [mutation.to_wire() for mutation in proposal.mutations],
            "reason": proposal.reason,
            "notes": [*notes, *proposal.notes],
        }
        if refused := self._refusal(context, proposal):
            told["refused"] = {"rule": refused.rule, "message": refused.message}
            await self._book.finish("reject", f"refused: {refused.message}", **told)
            return False
        made = await candidate.make(
            self.rooms.history.git,
            scenario=self.scenario.name,
            step=self.step,
            recipe=self.scenario.recipe,
            base_release_id=row["base_release_id"],
            tree=base,
            mutations=proposal.mutations,
            summary=proposal.title or proposal.reason.splitlines()[0],
            reason=proposal.reason,
            recorded_at=row["started_at"],
        )
        if made.content_id == row["base_content_id"]:
            await self._book.finish("skip", "the proposal changes nothing", **told)
            return False
        await self._book.save(
            "evaluating", candidate_id=made.candidate_id, content_id=made.content_id, **told
        )
        return True

    async def _context(self, row: RowMapping, tasks: Sequence[Task], base: HarnessTree) -> Context:
        read = self.rooms.store.read
        batch = await read(lambda connection: load_batch(connection, load(row["batch"])))
        spent = await read(budget.spent_today)
        return Context(
            scenario=self.scenario.name,
            step=self.step,
            seed=self.seed,
            tree=base,
            content_id=row["base_content_id"],
            batch=batch,
            history=await read(lambda connection: steps.history(connection, self.scenario.name)),
            budget=Budget(max(self.rooms.limits.usd_per_day - spent, 0.0), None),
            tried=await read(lambda connection: steps.tried_proposers(connection, row)),
            all_tasks=tasks,
            kinds=adapter(self.scenario.section.adapter).kinds,
            leak_texts=leaks(tasks),
            caller=self.rooms.caller,
            episode_slots=self.rooms.episode_slots,
            model=self._model(batch),
            is_cancelled=self._stops,
        )

    def _refusal(self, context: Context, proposal: Proposal) -> Refused | None:
        if found := list(context.check(proposal.mutations)):
            return found[0]
        gate_tasks = len(context.tasks("gate"))
        if past := turned_down(proposal.mutations, context.content_id, gate_tasks, context.history):
            return Refused("tried-before", f"step {past.step} tried the same on the same content")
        return None

    def _model(self, batch: Any) -> str | None:
        if self.scenario.section.model:
            return self.scenario.section.model
        seen = [exchange.model for unit in batch for exchange in unit.exchanges if exchange.model]
        return max(set(seen), key=seen.count) if seen else None

    # -- evaluating

    async def _evaluate(self, row: RowMapping, tasks: Sequence[Task]) -> Decision:
        gate = self.scenario.section.gate
        batch = await self.rooms.store.read(lambda connection: load_batch(connection, load(row["batch"])))
        model = self._model(batch)
        runner = ChatEpisodes(
            self.rooms.caller,
            self.scenario.name,
            self.step,
            await self._sides(row),
            model,
            temperature=gate.temperature,
            max_tokens=gate.max_tokens,
        )
        decision = await compare(
            tasks=tasks,
            gate=gate,
            seed=self.seed,
            copies=gate.temperature == 0,
            run=runner,
            log=EpisodeRows(self.rooms.store, self.lease, self.step, self._copy_keys(row, tasks, model)),
            limit=self.rooms.episode_slots,
            on_progress=self._progress,
            cancelled=self._stops,
        )
        metrics = dict(decision.metrics) | {"published": False}
        metrics["evidence"] |= {"adapter": self.scenario.section.adapter, "model": model}
        await self._book.save("deciding", metrics=metrics)
        return replace(decision, metrics=metrics)

    def _copy_keys(
        self, row: RowMapping, tasks: Sequence[Task], model: str | None
    ) -> dict[tuple[str, Side], bytes]:
        """Names for runs that are copies of equal ones; none where two equal runs may differ."""
        gate = self.scenario.section.gate
        engine = self.rooms.router.own(model).copy_key()
        if gate.temperature != 0 or engine is None:
            return {}
        contents: tuple[tuple[Side, str], ...] = (
            ("candidate", row["content_id"]),
            ("current", row["base_content_id"]),
        )
        return {
            (task.id, side): copy_key(task, content, f"{engine}:{model}", max_tokens=gate.max_tokens)
            for task in tasks
            if task.split == "gate"
            for side, content in contents
        }

    async def _sides(self, row: RowMapping) -> dict[Side, Served]:
        async def side(release_id: str, content_id: str) -> Served:
            prefix = chat_prefix(await self.rooms.scenarios.tree(content_id))
            return Served(self.scenario.name, release_id, content_id, prefix)

        return {
            "candidate": await side(row["candidate_id"], row["content_id"]),
            "current": await side(row["base_release_id"], row["base_content_id"]),
        }

    def _progress(self, done: int, total: int) -> None:
        self.rooms.progress[self.scenario.name] = Progress(self.step, done, total)
        self.rooms.events.publish("episode", self.scenario.name, step=self.step, done=done, total=total)

    # -- deciding and committing

    async def _decide(self, row: RowMapping, decision: Decision) -> None:
        metrics = dict(decision.metrics)
        if decision.for_person:
            await self._book.wait_for_review(decision.sentence, metrics)
            return
        if decision.outcome != "select":
            await self._book.finish(
                decision.outcome, decision.sentence, metrics=metrics | {"published": False}
            )
            return
        code = any(wire.get("options", {}).get("name") == "code_extension" for wire in load(row["mutations"]))
        if self.scenario.section.publish == "review" or code:
            why = "it changes code" if code else "publish is set to review"
            await self._book.wait_for_review(f"{decision.sentence}; {why}, so a person decides", metrics)
            return
        await self._book.save("committing", metrics=metrics, outcome="select", decision=decision.sentence)
        await self._commit(await self._book.row())

    async def _commit(self, row: RowMapping) -> None:
        """Publish what was decided. Safe to repeat."""
        metrics = load(row["metrics"]) | {"published": True}
        score, evidence = said(metrics)
        published = await self.rooms.history.publish(
            Publication(
                scenario=self.scenario.name,
                operation="training",
                content_id=row["content_id"],
                parent=row["base_release_id"],
                summary=row["reason"].splitlines()[0],
                body=row["decision"],
                score=score,
                evidence=evidence,
                recipe=row["recipe"],
                step=self.step,
                candidate_id=row["candidate_id"],
                metrics=metrics,
            )
        )
        await self._book.finish("select", row["decision"], metrics=metrics, release_id=published.release_id)


def said(metrics: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """What a release's commit says: its score, and the evidence for it."""
    scores = metrics.get("candidate_scores")
    score = f"{sum(scores.values()) / len(scores):.3f}" if scores else None
    if "wins" not in metrics:
        return score, ()
    return score, (f"{metrics['wins']} wins, {metrics['losses']} losses, {metrics['ties']} ties",)
