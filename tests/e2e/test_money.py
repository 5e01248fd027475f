"""Growth never spends more than a day's limit, whatever its calls turn out to cost; a person may let it."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import Daemon, running, wait_for
from tests.e2e.test_growth import listening, named
from tests.stub_provider import Answer, Asked, Raw, StubProvider

SENTENCE = "Return the words after the colon, and nothing else."
PRICE = 10.0
"""US dollars per million tokens, in and out."""

UPSTREAM = (
    '[[upstream]]\nname = "main"\nbase_url = "{url}"\nmodel = "m"\nprice = {{input = 10, output = 10}}\n'
)
REST = """
[[scenario]]
match = "*"
recipe = "paid"

[growth]
usd_per_day = {limit}

[recipe.paid]
use = "harness_evolve"
proposers = {proposers}
tasks = "tasks.toml"

[recipe.paid.gate]
max_tokens = 100
"""


def configure(
    folder: Path,
    stub: StubProvider,
    limit: float,
    *,
    upstream: str = UPSTREAM,
    proposers: str = "feedback",
    padding: str = "",
    timeout_s: float = 60.0,
) -> None:
    text = upstream.format(url=stub.url) + REST.format(limit=limit, proposers=json.dumps([proposers]))
    (folder / "reef.toml").write_text(text)
    tasks = "".join(
        f'[[task]]\nid = "t{n}"\nprompt = "{padding}Return exactly: part {n}"\nevaluator = "exact"\n'
        f'expected = "part {n}"\nsplit = "gate"\ntimeout_s = {timeout_s}\n'
        for n in range(9)
    )
    (folder / "tasks.toml").write_text(tasks)


def right_with_the_sentence(asked: Asked) -> str:
    return asked.user.partition(": ")[2] if SENTENCE in asked.system else "I would rather not."


def with_usage(usage: dict[str, int] | None) -> Callable[[Asked], Answer]:
    """The usual answers, with another usage or none."""

    def answer(asked: Asked) -> Answer:
        message = {"role": "assistant", "content": right_with_the_sentence(asked)}
        body: dict[str, Any] = {"id": "1", "model": "m", "choices": [{"index": 0, "message": message}]}
        return Raw((json.dumps(body | ({"usage": usage} if usage else {})).encode(),))

    return answer


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider(right_with_the_sentence) as provider:
        yield provider


def teach(daemon: Daemon, scenario: str = "s", text: str = SENTENCE) -> None:
    _, receipt = daemon.ask("Return exactly: reef is ready", scenario=scenario)
    daemon.report(receipt, score=0, feedback=text)


def spent(daemon: Daemon) -> float:
    return float(daemon.get("/reef/status")["budget"]["spent_usd"])


def grown(daemon: Daemon, scenario: str = "s", number: int = 1) -> dict[str, Any]:
    return daemon.step(scenario, number, until=("done",))


def test_a_step_tells_what_it_may_cost_and_what_it_did_cost(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, 1.0)
    with running(tmp_path) as daemon:
        teach(daemon)
        step = grown(daemon)
        assert step["outcome"] == "select", step["decision"]
        assert step["notes"][0].startswith("expected: 18 model calls, about ")
        cost = step["metrics"]["cost"]
        assert cost["calls"] == cost["episodes"] == len(stub.asked) - 1
        assert cost["money"] == pytest.approx((cost["input_tokens"] + cost["output_tokens"]) * PRICE / 1e6)
        assert cost["money"] == pytest.approx(spent(daemon))
        assert step["waits_for"] is None


def test_a_step_that_nobody_runs_any_more(tmp_path: Path, stub: StubProvider) -> None:
    """Its scenario only records after a restart: it keeps no money from others, and can be cancelled."""
    configure(tmp_path, stub, 1.0)
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask("Return exactly: reef is ready", scenario="away")
        stub.delay_s = 600.0
        daemon.report(receipt, score=0, feedback=SENTENCE)
        daemon.step("away", 1, until=("evaluating",))
        daemon.kill()
        with closing(sqlite3.connect(daemon.home / "reef.db")) as db, db:
            db.execute("UPDATE steps SET allowed_usd = 0.99")
        db.close()
        stub.delay_s = 0.0
        reef = tmp_path / "reef.toml"
        record = '[[scenario]]\nmatch = "away"\nrecipe = "record"\n\n'
        reef.write_text(reef.read_text().replace("[[scenario]]", f"{record}[[scenario]]"))
        daemon.start()
        teach(daemon, "s")
        assert grown(daemon, "s")["outcome"] == "select"
        daemon.post("/reef/steps/away/1/run", {}, status=409)
        daemon.post("/reef/steps/away/1/cancel", {}, status=202)
        assert daemon.get("/reef/steps/away/1")["outcome"] == "skip"


def test_a_step_that_carries_on_reserves_nothing_for_a_model_that_was_asked(
    tmp_path: Path, stub: StubProvider
) -> None:
    rule = {"op": "create", "id": "x", "options": {"name": "rules", "config": {"text": "Be kind."}}}
    proposal = json.dumps({"reason": "kindness", "mutations": [rule]})
    stub.answer = lambda asked: proposal if "improve" in asked.system else right_with_the_sentence(asked)
    configure(tmp_path, stub, 1.0)
    reef = tmp_path / "reef.toml"
    reef.write_text(reef.read_text().replace('["feedback"]', '["reflect", "feedback"]'))
    with running(tmp_path) as daemon:
        teach(daemon)
        first, second = grown(daemon), grown(daemon, number=2)
        assert (first["proposer"], second["proposer"]) == ("reflect", "feedback")
        assert first["notes"][0].startswith("expected: 21 model calls")
        assert second["notes"][0].startswith("expected: 18 model calls")


def test_the_price_is_that_of_the_model_that_is_asked(tmp_path: Path, stub: StubProvider) -> None:
    free = '[[upstream]]\nname = "free"\nbase_url = "{url}"\nmodel = "other"\n'
    configure(tmp_path, stub, 0.01, upstream=free + UPSTREAM)
    with running(tmp_path) as daemon:
        teach(daemon)
        assert daemon.step("s", 1)["waits_for"] == "money"


def test_one_table_prices_records_and_growth(tmp_path: Path, stub: StubProvider) -> None:
    rows = (
        '[[price]]\nmodel = "n*"\ninput = 1\noutput = 1\n[[price]]\nmodel = "m*"\ninput = 10\noutput = 10\n'
    )
    configure(tmp_path, stub, 1.0, upstream=UPSTREAM.replace("price = {{input = 10, output = 10}}\n", rows))
    with running(tmp_path) as daemon:
        teach(daemon)
        step = grown(daemon)
        assert step["metrics"]["cost"]["money"] == pytest.approx(spent(daemon)) != 0
        told = [record["usage"] for record in daemon.get("/reef/records", kind="turn")["records"]]
        assert [use["cost"] for use in told] == [
            pytest.approx((use["input_tokens"] + use["output_tokens"]) * PRICE / 1e6) for use in told
        ]
        episodes = daemon.get("/reef/records", kind="episode", limit=500)["records"]
        assert sum(each["usage"]["cost"] for each in episodes) == pytest.approx(spent(daemon))
        unknown = daemon.ask("hi", model="other")[1]
        assert daemon.get(f"/reef/records/{unknown}")["usage"]["cost"] is None


def test_a_batch_names_the_model_where_no_upstream_does(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, 1.0, upstream=UPSTREAM.replace('model = "m"\n', ""))
    with running(tmp_path) as daemon:
        teach(daemon)
        step = grown(daemon)
        assert step["outcome"] == "select", step["error"]
        assert step["metrics"]["evidence"]["model"] == "m"
        assert {asked.payload["model"] for asked in stub.asked} == {"m"}


def test_long_tasks_cost_what_their_texts_do(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, 0.2, padding="word " * 4000)
    with running(tmp_path) as daemon:
        teach(daemon)
        step = daemon.step("s", 1)
        assert (step["state"], step["waits_for"]) == ("waiting", "money")
        assert "of today's $0.20 is left; `reef step 1 -s s --run` runs it" in step["decision"]
        assert len(stub.asked) == 1, "nothing was asked for it"


def test_parallel_steps_share_the_limit(tmp_path: Path, stub: StubProvider) -> None:
    limit = 0.12  # one step is expected to take about $0.07
    configure(tmp_path, stub, limit)
    answered = threading.Event()

    def held(asked: Asked) -> str:
        answered.wait(60)
        return right_with_the_sentence(asked)

    with running(tmp_path) as daemon:
        receipts = {name: daemon.ask("Return exactly: reef", scenario=name)[1] for name in ("a", "b")}
        stub.answer = held
        for receipt in receipts.values():
            daemon.report(receipt, score=0, feedback=SENTENCE)

        def one_waits() -> str | None:
            rows = daemon.get("/reef/steps")["steps"]
            return next((row["scenario"] for row in rows if row["waits_for"] == "money"), None)

        waiting = wait_for(one_waits, "a step that waits")
        answered.set()
        (other,) = receipts.keys() - {waiting}
        assert daemon.step(other, 1)["waits_for"] is None
        assert spent(daemon) <= limit
        daemon.post(f"/reef/steps/{waiting}/1/run", {}, status=202)
        step = grown(daemon, waiting)
        assert (step["outcome"], step["waits_for"]) == ("select", None)


def test_an_answer_that_does_not_tell_costs_the_most_it_can(tmp_path: Path, stub: StubProvider) -> None:
    stub.answer = with_usage(None)
    configure(tmp_path, stub, 0.08)
    with running(tmp_path) as daemon:
        teach(daemon)
        step = grown(daemon)
        assert step["outcome"] == "select", step["decision"]
        assert spent(daemon) == pytest.approx(step["metrics"]["cost"]["money"])
        assert spent(daemon) > step["metrics"]["cost"]["calls"] * 100 * PRICE / 1e6
        teach(daemon, text="Be kind.")
        assert daemon.step("s", 2)["waits_for"] == "money"


def test_calls_that_time_out_are_counted_and_cannot_pass_the_limit(
    tmp_path: Path, stub: StubProvider
) -> None:
    limit = 0.08
    configure(tmp_path, stub, limit, timeout_s=0.2)
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask("Return exactly: reef", scenario="s")
        stub.delay_s = 2.0
        daemon.report(receipt, score=0, feedback=SENTENCE)
        step = daemon.step("s", 1)
        assert step["outcome"] == "error" or step["waits_for"] == "money"
        assert 12 * 100 * PRICE / 1e6 < spent(daemon) <= limit


def test_an_upstream_that_is_down_costs_nothing(tmp_path: Path, stub: StubProvider) -> None:
    dead = '[[upstream]]\nname = "dead"\nbase_url = "http://127.0.0.1:9"\nmodel = "dead"\n'
    dead += "price = {{input = 10, output = 10}}\n"
    configure(tmp_path, stub, 1.0, upstream=UPSTREAM + dead)
    reef = tmp_path / "reef.toml"
    reef.write_text(reef.read_text().replace("proposers", 'model = "dead"\nproposers'))
    with running(tmp_path) as daemon:
        teach(daemon)
        step = grown(daemon)
        assert step["outcome"] == "error"
        assert step["metrics"]["cost"]["calls"] > 1
        assert spent(daemon) == 0, "neither the calls that failed nor those cancelled because of them"


def test_an_empty_purse_stops_the_step_and_a_person_lets_it_go_on(tmp_path: Path, stub: StubProvider) -> None:
    stub.answer = with_usage({"prompt_tokens": 900, "completion_tokens": 100})  # $0.01 a call
    limit = 0.08
    configure(tmp_path, stub, limit)
    reef = tmp_path / "reef.toml"
    reef.write_text(reef.read_text().replace("[growth]", "[growth]\nparallel_episodes = 1"))
    with running(tmp_path) as daemon:
        teach(daemon)
        step = daemon.step("s", 1)
        assert (step["state"], step["waits_for"]) == ("waiting", "money")
        assert "`reef step 1 -s s --run` lets it go on" in step["decision"]
        assert f"it has spent ${spent(daemon):.2f}"[:19] in step["decision"]
        assert spent(daemon) <= limit + 0.01
        ran = {key(one): one["started_at"] for one in step["episodes"]}
        assert 4 <= len(ran) < 18
        stub.answer = right_with_the_sentence
        asked = len(stub.asked)
        daemon.post("/reef/steps/s/1/run", {}, status=202)
        step = grown(daemon)
        assert (step["outcome"], step["waits_for"]) == ("select", None), step["decision"]
        kept = {key(one): one["started_at"] for one in step["episodes"]}
        assert ran.items() <= kept.items()
        assert len(stub.asked) - asked == len(kept) - len(ran), "only what was missing ran"


def test_what_a_proposer_asks_is_paid_and_shown(tmp_path: Path, stub: StubProvider) -> None:
    change = {"op": "create", "id": "x", "options": {"name": "rules", "config": {"text": SENTENCE}}}
    proposal = json.dumps({"reason": "a lesson", "mutations": [change]})
    stub.answer = lambda asked: proposal if "improve" in asked.system else right_with_the_sentence(asked)
    configure(tmp_path, stub, 1.0, proposers="reflect")
    with running(tmp_path) as daemon:
        teach(daemon)
        step = grown(daemon)
        assert step["outcome"] == "select", step["decision"]
        assert step["notes"][0].startswith("expected: 21 model calls")
        assert step["metrics"]["cost"]["calls"] == step["metrics"]["cost"]["episodes"] + 1
        assert step["metrics"]["cost"]["money"] == pytest.approx(spent(daemon))
        stub.answer = lambda asked: "no idea"
        teach(daemon, text="Be kind.")
        refused = grown(daemon, number=2)
        assert refused["outcome"] == "reject"
        assert refused["metrics"]["cost"]["calls"] == 3
        assert refused["metrics"]["cost"]["money"] > 0


def test_a_crash_leaves_nothing_kept_for_a_step_that_is_over(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, 0.1)
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask("Return exactly: reef", scenario="s")
        stub.delay_s = 0.3
        daemon.report(receipt, score=0, feedback=SENTENCE)
        daemon.step("s", 1, until=("evaluating",))
        wait_for(lambda: daemon.get("/reef/steps/s/1")["episodes"] or None, "an episode")
        daemon.kill()
        stub.delay_s = 0.0
        daemon.start()
        assert grown(daemon)["outcome"] == "select"
        teach(daemon, text="Be kind.")
        assert grown(daemon, number=2)["outcome"] == "reject"


CANNOT_WAIT = """
CREATE TRIGGER cannot_wait BEFORE UPDATE ON steps WHEN NEW.state IN ('waiting', 'done')
BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END;
"""


def change_store(daemon: Daemon, statements: str) -> None:
    with closing(sqlite3.connect(daemon.home / "reef.db")) as db, db:
        db.executescript(statements)
    db.close()


def test_killed_while_it_writes_that_it_waits_it_has_nobodys_leave(
    tmp_path: Path, stub: StubProvider
) -> None:
    """That it waits cannot be written, which leaves the store as a crash just before it does."""
    configure(tmp_path, stub, 0.01)
    with running(tmp_path) as daemon:
        change_store(daemon, CANNOT_WAIT)
        with listening(daemon) as heard:
            teach(daemon)
            wait_for(lambda: named(heard, "error") or None, "the failed write")
        daemon.kill()
        change_store(daemon, "DROP TRIGGER cannot_wait")
        daemon.start()
        assert daemon.step("s", 1)["waits_for"] == "money"
        assert len(stub.asked) == 1, "nothing was asked for it"


def test_what_calls_held_when_it_was_killed_counts_in_full(tmp_path: Path, stub: StubProvider) -> None:
    """Nobody knows whether they were answered."""
    configure(tmp_path, stub, 1.0)
    reef = tmp_path / "reef.toml"
    reef.write_text(reef.read_text().replace("[growth]", "[growth]\nparallel_episodes = 4"))
    with running(tmp_path) as daemon:
        _, receipt = daemon.ask("Return exactly: reef is ready", scenario="s")
        stub.delay_s = 600.0
        daemon.report(receipt, score=0, feedback=SENTENCE)
        wait_for(lambda: len(stub.asked) == 5 or None, "four calls under way")
        assert spent(daemon) == 0
        daemon.kill()
        with closing(sqlite3.connect(daemon.home / "reef.db")) as db, db:
            calls, held = db.execute("SELECT count(*), sum(usd) FROM holds").fetchone()
        db.close()
        assert calls == 4
        assert held > 4 * 100 * PRICE / 1e6
        stub.delay_s = 0.0
        daemon.start()
        assert spent(daemon) >= held
        step = grown(daemon)
        assert step["outcome"] == "select", step["decision"]
        cost = step["metrics"]["cost"]
        assert cost["calls"] == cost["episodes"] + 4 == len(stub.asked) - 1
        assert cost["money"] == pytest.approx(spent(daemon))
        assert cost["money"] > held


def test_a_cancelled_wait_spends_nothing(tmp_path: Path, stub: StubProvider) -> None:
    configure(tmp_path, stub, 0.01)
    with running(tmp_path) as daemon:
        teach(daemon)
        daemon.step("s", 1)
        daemon.post("/reef/steps/s/1/cancel", {}, status=202)
        step = grown(daemon)
        assert (step["outcome"], step["waits_for"]) == ("skip", None)
        assert spent(daemon) == 0


def key(episode: dict[str, Any]) -> tuple[str, str, int]:
    return episode["task"], episode["side"], episode["repeat"]
