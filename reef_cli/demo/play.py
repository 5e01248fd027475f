"""The four steps of the loop, played on the demo's stage."""

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.client import Client
from reef.errors import ReefError, TimedOut, Unavailable
from reef.home import way_to_write
from reef_cli.demo import show
from reef_cli.demo.cases import HELD_OUT, RULE, TRAFFIC, Case
from reef_cli.demo.stage import MAX_TOKENS, MODEL, SCENARIO, Stage
from reef_cli.output import out
from reef_cli.render import releases as render

LOAD_S = 60.0
GROW_S = 150.0
RESULT_FILE = "demo.json"
_ELSEWHERE = "run it in a folder that you may write to"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo came to. `gate` are the metrics of the step that decided."""

    published: bool
    release_id: str | None
    before: int
    after: int
    gate: dict[str, Any]
    seconds: float

    def write(self, file: Path) -> None:
        told = {
            "published": self.published,
            "release_id": self.release_id,
            "held_out": {"n": len(HELD_OUT), "before": self.before, "after": self.after},
            "gate": self.gate,
            "seconds": round(self.seconds, 1),
        }
        try:
            file.write_text(json.dumps(told, indent=2) + "\n", "utf-8")
        except OSError as error:
            raise ReefError(
                f"cannot write {file}\n{error.strerror}", hint=way_to_write(error, _ELSEWHERE)
            ) from error


def result_file(folder: Path) -> Path:
    """Where the outcome will go. Raises `ReefError` where it cannot, before minutes are spent on it."""
    file = folder / RESULT_FILE
    if file.is_dir() or not os.access(file if file.exists() else folder, os.W_OK):
        raise _unwritable(file, "it is a folder" if file.is_dir() else "no permission")
    return file


def _unwritable(file: Path, why: str) -> ReefError:
    return ReefError(f"cannot write {file}\n{why}", hint=_ELSEWHERE)


def play(stage: Stage, began: float) -> Outcome:
    """Serve, observe, grow, commit; then ask again. Everything that is told is what happened."""
    client = stage.client
    wait_for_model(client)
    show.heading(1, "Serve", f"{MODEL} answers through {stage.url}; each answer has a receipt")
    asked = [(case, *ask(client, case)) for case in TRAFFIC]
    for case, answer, receipt in asked:
        show.exchange(case, answer, receipt)
    before = count_right(client, "held-out questions asked, before")
    out(f"   held out, before: {before} of {len(HELD_OUT)} right (in no task file, and never reported)")

    show.heading(2, "Observe", "a score, and what would have been right, for each receipt")
    events = client.events(SCENARIO)
    next(events)
    for case, answer, receipt in asked:
        observe(client, case, answer, receipt)

    show.heading(3, "Grow", "a recipe proposes, the gate measures it against what is served")
    step = grow(client, events)

    show.heading(4, "Commit", "only what is better becomes a release")
    commit(client)
    published = step["outcome"] == "select"
    after = count_right(client, "held-out questions asked, after") if published else before
    tell_result(client, before, after, published)
    return Outcome(
        published, step["release_id"], before, after, step["metrics"] or {}, time.monotonic() - began
    )


def wait_for_model(client: Client) -> None:
    deadline = time.monotonic() + LOAD_S
    with show.waiting("the model loads"):
        while (runtime := client.status()["serving"]["upstreams"][0])["state"] != "ready":
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"the model is still {runtime['state']}: {runtime['detail']}", hint="see `reef logs`"
                )
            time.sleep(0.1)


def ask(client: Client, case: Case) -> tuple[str, str]:
    """One chat completion through the daemon: the answer and its receipt."""
    answer, receipt = client.chat(
        [{"role": "user", "content": case.prompt}],
        scenario=SCENARIO,
        model=MODEL,
        max_tokens=MAX_TOKENS,
        temperature=0,
    )
    if receipt is None:
        raise Unavailable("the answer came without a receipt", hint="see `reef logs`")
    return answer["choices"][0]["message"]["content"], receipt


def count_right(client: Client, what: str) -> int:
    progress, right = show.Progress(), 0
    for done, case in enumerate(HELD_OUT, 1):
        right += case.is_right(ask(client, case)[0])
        progress.step(what, done, len(HELD_OUT))
    return right


def observe(client: Client, case: Case, answer: str, receipt: str) -> None:
    if case.is_right(answer):
        client.report([receipt], score=1, scenario=SCENARIO)
        out(f"   score 1  {case.prompt}")
        return
    feedback = {"text": RULE, "correction": case.expected}
    client.report([receipt], score=0, feedback=feedback, scenario=SCENARIO)
    out(f"   score 0  {case.prompt}  it should have been: {case.expected}")


def grow(client: Client, events: Iterable[Any]) -> dict[str, Any]:
    """Follow the events until a step has published, or no proposer is left; returns the last step."""
    progress, deadline = show.Progress(), time.monotonic() + GROW_S
    proposed: set[int] = set()
    for event in events:
        if time.monotonic() > deadline:
            raise TimedOut(
                f"growing took longer than {GROW_S:g} s", hint="this machine is very busy; try again"
            )
        number = event.data.get("step")
        if event.name == "step" and event.data["state"] == "evaluating" and number not in proposed:
            proposed.add(number)
            step = client.step(SCENARIO, number)
            out(f"   step {number}: {step['proposer']} proposes: {step['reason']}")
            progress = show.Progress()
        elif event.name == "episode":
            progress.step("episodes", event.data["done"], event.data["total"])
        elif event.name == "step" and event.data["state"] == "done":
            step = client.step(SCENARIO, number)
            out(f"   step {number}: {step['outcome']}: {step['decision']}")
            if step["outcome"] == "select" or step["proposer"] in (None, "demonstrations"):
                return step
    raise Unavailable("the daemon ended while it was growing", hint="see `reef logs`")


def commit(client: Client) -> None:
    rows = [row for row in client.releases(SCENARIO)["releases"] if row["published"]]
    out("   $ reef log --oneline")
    show.indented(render.log(rows, short_form=True, columns=show.WIDTH))
    if len(rows) > 1:
        out("   $ reef diff")
        show.indented(client.diff(SCENARIO, "HEAD~1", "HEAD"))


def tell_result(client: Client, before: int, after: int, published: bool) -> None:
    total = len(HELD_OUT)
    if not published:
        out("\nThe gate said no: nothing was published, and what is served did not change.")
        return
    out(f"\nThe same {total} held-out questions: {before} right before, {after} right after.")
    costs = [step["metrics"]["cost"] for step in client.steps(SCENARIO)["steps"] if step["metrics"]]
    tokens = sum((cost["input_tokens"] or 0) + (cost["output_tokens"] or 0) for cost in costs)
    episodes = sum(cost["episodes"] for cost in costs)
    out(f"It cost {episodes} episodes, {tokens:,} tokens on this machine, and no money.")
