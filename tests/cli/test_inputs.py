"""What people type, and what the wire brings: checked before it is sent, harmless when it is printed."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reef.home import DaemonInfo
from reef_cli.commands.recipes import describe
from reef_cli.output import printable
from reef_cli.render import reports, steps
from reef_cli.render.releases import gate_line
from tests.cli.canned import RECEIPT, RECORD, RELEASES, STATUS, STEP
from tests.cli.conftest import RunReef
from tests.fake_daemon import TOKEN, Asked, FakeDaemon


@pytest.mark.parametrize("score", ["nan", "inf", "-inf", "1e400"])
def test_a_score_is_a_finite_number(online: RunReef, fake: FakeDaemon, score: str) -> None:
    ran = online("report", RECEIPT, "--score", score)
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: --score must be a finite number")
    assert fake.asked == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--feedback", ""], "--feedback is empty"),
        (["--feedback", " \n"], "--feedback is empty"),
        (["--correction", ""], "--correction is empty"),
        (["--feedback", "[]"], "--feedback is a JSON list"),
        (["--feedback", "{}"], "--feedback says nothing"),
        ([], "a report needs something to say"),
        (["--correction", "a", "--feedback", '{"correction": "b"}'], "two corrections were given"),
    ],
)
def test_a_report_says_something(online: RunReef, fake: FakeDaemon, words: list[str], says: str) -> None:
    ran = online("report", RECEIPT, *words)
    assert (ran.code, ran.err.startswith(f"error: {says}")) == (2, True)
    assert fake.asked == []


def test_brackets_may_start_a_sentence(online: RunReef, fake: FakeDaemon) -> None:
    assert online("report", RECEIPT, "--feedback", "[sic] use metric units").code == 0
    assert fake.last("POST /reef/report").body["feedback"] == "[sic] use metric units"


@pytest.mark.parametrize("name", ["", "../etc", "a/b", "a b", "-x", "HEAD"])
@pytest.mark.parametrize("words", [("log",), ("records",), ("steps",), ("pending",), ("env",)])
def test_what_cannot_name_a_scenario(
    online: RunReef, fake: FakeDaemon, words: tuple[str, ...], name: str
) -> None:
    ran = online(*words, "-s", name)
    assert (ran.code, ran.err.splitlines()[0]) == (2, f"error: `{name}` cannot name a scenario")
    assert fake.asked == []


def test_an_id_is_one_segment_of_a_path(online: RunReef, fake: FakeDaemon) -> None:
    assert online("explain", "a/b?c").code == 4
    assert fake.asked[-1].path == "/reef/records/a%2Fb%3Fc"
    assert online("explain", "..").err.startswith("error: `..` names nothing")


@pytest.mark.parametrize(
    "words", [("log", "--onelin"), ("steps", "-n", "many"), ("show", "a", "b"), ("scenarios", "dance")]
)
def test_the_parsers_own_errors_look_like_ours(online: RunReef, words: tuple[str, ...]) -> None:
    ran = online(*words)
    first, second = ran.err.splitlines()
    assert (ran.code, ran.out) == (2, "")
    assert first.startswith("error: ")
    assert second == f"hint: `reef {words[0]} --help` shows how"


def test_run_and_cancel_exclude_each_other(online: RunReef) -> None:
    assert online("step", "1", "--run", "--cancel").code == 2


def test_nothing_from_the_wire_is_obeyed_by_a_terminal(online: RunReef, fake: FakeDaemon) -> None:
    assert printable("a\tb\nc\x1b[31m\x9b2J\x07\r") == "a\tb\nc\\x1b[31m\\x9b2J\\x07\\x0d"
    record = {**RECORD, "status": "failed", "error": {"message": "\x1b]0;owned\x07 said no"}}
    fake.routes[f"GET /reef/records/{RECEIPT}"] = record
    ran = online("explain", RECEIPT)
    assert "\\x1b]0;owned\\x07 said no" in ran.out
    assert "\x1b" not in ran.out
    assert json.loads(online("explain", RECEIPT, "--json").out) == record
    fake.routes["GET /reef/steps"] = (409, {"error": {"type": "conflict", "message": "\x1b[2J", "hint": ""}})
    assert online("steps").err == "error: \\x1b[2J\n"


def test_a_turn_that_failed_is_not_offered_for_a_report() -> None:
    assert "reef report --score 1" in reports.explain(RECORD)
    assert "reef report" not in reports.explain({**RECORD, "status": "failed"})
    assert "reef report" not in reports.explain({**RECORD, "kind": "title"})


def test_records_of_several_scenarios_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "SCENARIO" not in reports.records({"records": [RECORD]})
    told = reports.records({"records": [RECORD, {**RECORD, "scenario": "other"}]})
    assert told.splitlines()[0].split() == ["RECEIPT", "SCENARIO", "TIME", "KIND", "STATUS", "MODEL"]
    assert " other " in told


def test_last_passes_over_scenarios_that_are_archived(online: RunReef, fake: FakeDaemon) -> None:
    gone = {**RECORD, "agent_record_id": "gone", "scenario": "old"}
    fake.routes["GET /reef/records"] = {"records": [gone, RECORD]}
    online("report", "--last", "--score", "1")
    assert fake.last("POST /reef/report").body["references"] == [RECEIPT]
    fake.routes["GET /reef/records"] = {"records": [gone]}
    online("report", "--last", "--score", "0")
    assert fake.last("POST /reef/report").body == {"score": 0.0, "references": [RECEIPT]}


def test_all_steps_are_asked_for(online: RunReef, fake: FakeDaemon) -> None:
    online("steps", "--json")
    assert fake.last("GET /reef/steps").query["limit"] == "10000"
    fake.routes["GET /reef/steps"] = lambda asked: {"steps": [STEP] * int(asked.query["limit"])}
    ran = online("steps", "--json")
    assert (len(json.loads(ran.out)), ran.err) == (10_000, "only the latest 10000 steps\n")
    assert online("steps").err == "only the latest 20 steps; more with -n\n"
    assert online("steps", "-n", "3").err == ""


def test_a_pipe_loses_nothing(online: RunReef, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.routes["GET /reef/steps"] = {"steps": [{**STEP, "decision": "because " * 30 + "so."}]}
    assert online("steps").out.endswith("...\n")
    monkeypatch.delenv("COLUMNS")
    assert online("steps").out.endswith("because so.\n")


def test_records_say_that_there_are_more(online: RunReef, fake: FakeDaemon) -> None:
    rows = [{**RECORD, "agent_record_id": f"r{n}", "sequence": 99 - n} for n in range(30)]
    fake.routes["GET /reef/records"] = lambda asked: {
        "records": rows[: int(asked.query["limit"])],
        "next_after_sequence": None,
        "next_after": "r20",
    }
    ran = online("records", "--json")
    assert ran.err == "only the latest 20 records; more with -n\n"
    assert len(json.loads(ran.out)["records"]) == 20
    assert json.loads(ran.out)["next_after"] == "r19"
    assert online("records", "-n", "20").err == ""


def test_records_are_chosen_by_what_they_are(online: RunReef, fake: FakeDaemon) -> None:
    chosen = {"kind": "turn", "status": "failed", "run": "r1", "session": "s1"}
    online("records", *(word for key, value in chosen.items() for word in (f"--{key}", value)))
    assert fake.last("GET /reef/records").query.items() >= chosen.items()
    online("records")
    assert not chosen.keys() & fake.last("GET /reef/records").query.keys()
    fake.routes["GET /reef/records"] = {"records": []}
    assert online("records", "--kind", "title").out == "no records\n"


def test_a_turn_that_was_sent_again_is_told_apart() -> None:
    told = reports.records({"records": [RECORD, {**RECORD, "superseded_by": RECEIPT}]}).splitlines()
    assert [" complete, superseded " in line for line in told[1:]] == [False, True]


@pytest.mark.parametrize("scenario", [(), ("-s", "city")])
def test_more_records_than_the_daemon_hands_out_at_once(
    online: RunReef, fake: FakeDaemon, scenario: tuple[str, ...]
) -> None:
    rows = [{**RECORD, "agent_record_id": f"r{n}", "sequence": 2500 - n} for n in range(2500)]

    def page(asked: Asked) -> dict[str, Any]:
        query = asked.query
        first = int(query["after"][1:]) + 1 if "after" in query else 0
        first = 2501 - int(query["after_sequence"]) if "after_sequence" in query else first
        part = rows[first : first + int(query["limit"])]
        last = part[-1] if part else None
        return {
            "records": part,
            "next_after_sequence": last["sequence"] if last and scenario else None,
            "next_after": last["agent_record_id"] if last else None,
        }

    fake.routes["GET /reef/scenarios/city/records" if scenario else "GET /reef/records"] = page
    for wanted, there in ((2200, 2200), (5000, 2500)):
        ran = online("records", "-n", str(wanted), "--json", *scenario)
        found = json.loads(ran.out)["records"]
        assert [row["agent_record_id"] for row in found] == [f"r{n}" for n in range(there)]
        assert ran.err == ""


def test_explain_says_what_it_cost() -> None:
    usage = {"input_tokens": 12, "output_tokens": 3, "cost": 0.00021}
    assert "cost       $0.000210" in reports.explain({**RECORD, "usage": usage})
    assert "cost" not in reports.explain(RECORD)


def many(count: int) -> list[dict[str, Any]]:
    waiting, *others = RELEASES
    more = [{**waiting, "step": 9 + n, "candidate_id": f"{n:040x}"} for n in range(count)]
    return [*more[::-1], *others]


def test_a_long_list_of_candidates_is_cut(online: RunReef, fake: FakeDaemon) -> None:
    fake.routes["GET /reef/scenarios/ready/releases"] = lambda asked: {"releases": many(30)}
    ran = online("promote")
    assert ran.err.startswith("error: 30 candidates wait: step:38, step:37, step:36, step:35, step:34, ...\n")
    assert "reef pending --all" in ran.err
    assert "reef pending --all" in online("diff").err
    told = online("pending").out
    assert told.count("waits for your review") == 5
    assert "25 more wait for your review: reef pending -s ready --all" in told
    assert online("pending", "--all").out.count("waits for your review") == 30
    assert len(json.loads(online("pending", "--json").out)["ready"]["reviews"]) == 30


def test_log_n_counts_releases(online: RunReef, fake: FakeDaemon) -> None:
    fake.routes["GET /reef/scenarios/ready/releases"] = lambda asked: {"releases": many(3)}
    ran = online("log", "--oneline", "-n", "1")
    assert [line.split()[1] for line in ran.out.splitlines()] == ["step:11", "step:10", "step:9", "step:1"]
    fake.routes["GET /reef/scenarios/ready/releases"] = lambda asked: {"releases": many(30)}
    ran = online("log", "--oneline", "-n", "1")
    assert len(ran.out.splitlines()) == 6
    assert ran.err.startswith("25 more candidates wait")


def test_a_candidate_that_no_longer_applies(online: RunReef, fake: FakeDaemon) -> None:
    told = {"type": "conflict", "message": "no longer fits what is served", "hint": ""}

    def diff(asked: Any) -> Any:
        return (409, {"error": told}) if asked.query["from"] == "HEAD" else "its own changes"

    fake.routes["GET /reef/scenarios/ready/diff"] = diff
    assert "no longer fits what is served" in online("pending").out
    shown = online("show", "step:3").out
    assert "no longer fits what is served" in shown
    assert "its own changes" in shown
    assert online("diff").code == 1


def test_what_was_not_measured_is_not_called_a_draw() -> None:
    metrics = {"selection": {"outcome": "skip", "policy": "sequential"}, "wins": 0, "losses": 0, "ties": 0}
    assert gate_line(metrics) == "skip (sequential): not measured"
    assert gate_line({**metrics, "ties": 2}) == "skip (sequential): 0 wins, 0 losses, 2 ties"


def test_a_step_that_carried_on_says_so() -> None:
    batch = [{"report": "rep-0", "receipts": [RECEIPT]}]
    told = steps.step({**STEP, "step": 2, "continues": 1, "batch": batch})
    assert "batch of 1 report, carried on from step 1" in told


def test_the_hint_about_gate_tasks_is_not_everywhere(online: RunReef, fake: FakeDaemon) -> None:
    fake.routes["GET /reef/status"] = {**STATUS, "hint": "write gate tasks"}
    assert online("pending").err == "hint: write gate tasks\n"
    assert online("status").err == ""
    assert online("report", "--score", "1", RECEIPT).err == ""


def test_recipes_say_what_they_need() -> None:
    from importlib.metadata import EntryPoint

    group = "reef.recipes"
    evolve = describe(EntryPoint("e", "recipes.harness_evolve:HarnessEvolve", group))
    assert evolve["needs"] == "reports; a model for the gate"
    record = describe(EntryPoint("r", "recipes.record:Record", group))
    assert record["needs"] == "traffic"


def test_archived_scenarios_are_listed_when_asked_for(online: RunReef, fake: FakeDaemon) -> None:
    live = {"scenario": "ready", "recipe": "ready", "surface": "harness", "release_id": "aa" * 20}
    gone = {"scenario": "old", "archived": True, "recipe": None, "surface": None, "release_id": None}
    fake.routes["GET /reef/scenarios"] = lambda asked: {
        "scenarios": [live, gone] if asked.query.get("archived") == "1" else [live]
    }
    assert "old" not in online("scenarios").out
    assert online("scenarios", "--all").out.splitlines()[-1].split() == ["old", "-", "-", "archived"]


class TestStaleUrl:
    """The daemon was started anew on another port after `eval "$(reef env)"`."""

    @pytest.fixture(autouse=True)
    def stale(self, nowhere: Path, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
        home = nowhere / "home"
        home.mkdir()
        (home / "token").write_text(TOKEN + "\n")
        found = DaemonInfo(1, fake.url, "0", "2026-01-31T12:00:00.000Z", "b")
        monkeypatch.setattr("reef.home.read_daemon", lambda _home: found)
        monkeypatch.setattr("reef_cli.commands.env.read_daemon", lambda _home: found)
        monkeypatch.setenv("REEF_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("REEF_TOKEN", "of-the-earlier-one")

    def test_env_and_token_speak_of_the_homes_daemon(self, reef: RunReef, fake: FakeDaemon) -> None:
        found = json.loads(reef("env", "--json").out)
        assert (found["REEF_URL"], found["REEF_TOKEN"]) == (fake.url, TOKEN)
        assert reef("token").out == f"{TOKEN}\n"

    @pytest.mark.parametrize("words", [("log",), ("status",), ("report", "--last", "--score", "1")])
    def test_any_command_says_what_is_wrong(
        self, reef: RunReef, fake: FakeDaemon, words: tuple[str, ...]
    ) -> None:
        ran = reef(*words)
        assert ran.code == 3
        assert ran.err.endswith(
            f"hint: REEF_URL names http://127.0.0.1:9, but the daemon of this home is at {fake.url}: "
            'run eval "$(reef env)"\n'
        )


@pytest.mark.parametrize("url", ["http://h:99999", "http://[::1", "http://a b", "localhost:1", "http://"])
def test_a_reef_url_that_is_none(reef: RunReef, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("REEF_URL", url)
    ran = reef("log")
    assert (ran.code, ran.err.startswith(f"error: `{url}` is no http address")) == (1, True)
    assert ran.err.endswith("hint: check REEF_URL\n")


@pytest.mark.parametrize("words", [("explain", "\udcff"), ("train", "bad\udcff"), ("log", "-s", "\udcff")])
def test_words_that_are_no_text(online: RunReef, fake: FakeDaemon, words: tuple[str, ...]) -> None:
    ran = online(*words)
    assert (ran.code, ran.err.splitlines()[0]) == (2, f"error: `{words[-1][:-1]}\\udcff` is not valid text")
    assert fake.asked == []


def in_a_shell(fake: FakeDaemon, line: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run `line`, in which `reef` is the command, with the fake daemon answering."""
    reef = shlex.join([sys.executable, "-c", "from reef_cli.main import main; main()"])
    script = f'reef() {{ {reef} "$@"; }}; {line}'
    known = {**os.environ, "REEF_URL": fake.url, "REEF_TOKEN": TOKEN, **environ}
    return subprocess.run(["sh", "-c", script], env=known, capture_output=True, check=False, timeout=60)


def test_an_input_that_is_no_text(fake: FakeDaemon, nowhere: Path) -> None:
    line = f"printf 'bad\\377' | reef report {RECEIPT} --feedback @-"
    for locale in ("C", "C.UTF-8"):
        ran = in_a_shell(fake, line, LC_ALL=locale)
        assert (ran.returncode, ran.stderr.startswith(b"error: cannot read -")) == (2, True)
    assert fake.asked == []


def test_an_output_that_knows_only_ascii(fake: FakeDaemon, nowhere: Path) -> None:
    fake.routes[f"GET /reef/records/{RECEIPT}"] = {**RECORD, "model": "modèle"}
    ran = in_a_shell(fake, f"reef explain {RECEIPT}", PYTHONIOENCODING="ascii")
    assert (ran.returncode, b"mod\\xe8le" in ran.stdout) == (0, True)
    ran = in_a_shell(fake, f"reef explain {RECEIPT} --json", PYTHONIOENCODING="ascii")
    assert json.loads(ran.stdout)["model"] == "modèle"


@pytest.mark.parametrize(("where", "why"), [(">/dev/full", b"No space left"), (">&-", b"is closed")])
def test_an_output_that_takes_nothing(fake: FakeDaemon, nowhere: Path, where: str, why: bytes) -> None:
    ran = in_a_shell(fake, f"reef status {where}")
    assert (ran.returncode, ran.stderr.startswith(b"error: cannot print"), why in ran.stderr) == (
        1,
        True,
        True,
    )


def test_what_answers_and_is_not_reef_is_said(online: RunReef, fake: FakeDaemon) -> None:
    fake.routes["GET /reef/status"] = {"it": "works"}
    ran = online("status")
    assert ran.code == 3
    assert "is not Reef" in ran.err
    assert "REEF_URL" in ran.err
