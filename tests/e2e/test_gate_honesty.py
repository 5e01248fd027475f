"""The gate's promise, measured through a real daemon: what does not help is hardly ever published."""

from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import Daemon, running, wait_for
from tests.stub_provider import Asked, StubProvider

USEFUL = "Think of the tide before you answer."
CONFIG = """
[[upstream]]
name = "main"
base_url = "{url}"
model = "m"

[[scenario]]
match = "*"
recipe = "coin"

[growth]
parallel_steps = 4
parallel_episodes = 16

[recipe.coin]
use = "harness_evolve"
proposers = ["feedback"]
tasks = "tasks.toml"

[recipe.coin.gate]
budget_pairs = 60
temperature = 1.0
"""


class Coin:
    """Right with probability 0.5, or 0.95 where the useful sentence stands in the system text.

    The n-th answer to equal requests is always the same, whatever comes in between.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._asked: Counter[tuple[str, str]] = Counter()

    def __call__(self, asked: Asked) -> str:
        key = (asked.system, asked.user)
        self._asked[key] += 1
        digest = sha256(f"{self._seed}:{key}:{self._asked[key]}".encode()).digest()
        chance = 0.95 if USEFUL in asked.system else 0.5
        return "right" if int.from_bytes(digest[:8]) / 2**64 < chance else "wrong"


def write_tasks(folder: Path, count: int = 12) -> None:
    text = "".join(
        f'[[task]]\nid = "t{n}"\nprompt = "Question {n}?"\n'
        'evaluator = "exact"\nexpected = "right"\nsplit = "gate"\n'
        for n in range(count)
    )
    (folder / "tasks.toml").write_text(text)


def report(daemon: Daemon, scenario: str, text: str) -> None:
    _, receipt = daemon.ask("What now?", scenario=scenario)
    daemon.report(receipt, score=0, feedback=text)


def all_done(daemon: Daemon, count: int) -> list[dict[str, Any]]:
    def look() -> list[dict[str, Any]] | None:
        done = [one for one in daemon.get("/reef/steps", limit=500)["steps"] if one["state"] == "done"]
        return done if len(done) == count else None

    return wait_for(look, f"{count} steps", seconds=240)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_forty_useless_sentences_and_ten_useful_ones(tmp_path: Path) -> None:
    write_tasks(tmp_path)
    with StubProvider(Coin(seed=11)) as stub:
        (tmp_path / "reef.toml").write_text(CONFIG.format(url=stub.url))
        with running(tmp_path) as daemon:
            for number in range(40):
                report(daemon, "useless", f"Useless advice number {number}.")
            all_done(daemon, 40)
            for number in range(10):  # one after another: which answer comes n-th must not depend on luck
                report(daemon, f"useful-{number}", USEFUL)
                daemon.step(f"useful-{number}", 1, until=("done",))
            steps = all_done(daemon, 50)

    assert {one["outcome"] for one in steps} <= {"select", "reject", "inconclusive"}
    selected = Counter(one["scenario"] == "useless" for one in steps if one["outcome"] == "select")
    assert selected[True] <= 6
    assert selected[False] >= 9
    naive = [
        one
        for one in steps
        if one["scenario"] == "useless" and one["metrics"]["wins"] > one["metrics"]["losses"]
    ]
    assert len(naive) > 6, "counting wins alone would have published more"
