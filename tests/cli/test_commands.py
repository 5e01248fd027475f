"""The commands: what they ask, what they print for machines, how they end."""

import json
import os
import shlex
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import reef as package
from reef_cli.commands.env import lines, variables
from reef_cli.commands.recipes import describe
from reef_cli.commands.report import read_feedback
from reef_cli.exits import UsageError
from reef_cli.registry import COMMANDS
from tests.cli.canned import C2, R1, RECEIPT
from tests.cli.conftest import RunReef
from tests.fake_daemon import TOKEN, FakeDaemon

PRINTS_DATA = [
    "status", "env", "token", "recipes", "scenarios", "scenarios show", "scenarios create new",
    "scenarios archive ready", "records", f"explain {RECEIPT}", "report --score 1 --last", "pending", "steps",
    "step 1", "log", "log -p", "show", "diff", "checkout HEAD~1", "promote", "reject",
    "train kindly",
]  # fmt: skip


@pytest.mark.parametrize("words", PRINTS_DATA)
def test_json_on_every_command_that_prints_data(online: RunReef, words: str) -> None:
    ran = online(*words.split(), "--json")
    assert ran.code == 0, ran.err
    json.loads(ran.out)


@pytest.mark.parametrize("words", [w for w in PRINTS_DATA if w.split()[0] not in ("token", "recipes")])
def test_without_a_daemon_each_says_so_and_ends_with_3(reef: RunReef, words: str) -> None:
    ran = reef(*words.split())
    assert ran.code == 3
    assert ran.out == ""
    assert ran.err.startswith("error: no Reef daemon runs in ")
    assert ran.err.endswith("hint: start it with `reef up`\n")


def test_status_json_without_a_daemon(reef: RunReef, nowhere: Path) -> None:
    ran = reef("status", "--json")
    assert (ran.code, json.loads(ran.out)) == (3, {"running": False, "home": str(nowhere / "home")})


def test_status_json(online: RunReef, fake: FakeDaemon) -> None:
    data = json.loads(online("status", "--json").out)
    assert (data["running"], data["url"], data["token_file"]) == (True, fake.url, "HOME/token")
    assert set(data) == {
        *("running", "version", "started_at", "config_changed", "warnings", "error", "url"),
        *("pid", "home", "token_file", "runtime", "budget", "storage", "scenarios"),
    }
    assert (data["version"], data["storage"]["records"], data["error"]) == ("0.1.0", 421, None)


def test_version_is_the_packages(reef: RunReef) -> None:
    assert reef("--version").out == f"{package.__version__}\n"


def test_every_command_loads_and_has_help(reef: RunReef) -> None:
    for name in COMMANDS:
        ran = reef(name, "--help")
        assert ran.code == 0, name
        assert ran.out.startswith(f"Usage: reef {name}")
    assert reef().out == reef("--help").out


def test_a_report_is_sent_as_it_was_said(online: RunReef, fake: FakeDaemon, nowhere: Path) -> None:
    (nowhere / "said.txt").write_text("Use metric units.")
    online(
        "report",
        "run:7",
        RECEIPT,
        "--score",
        "0",
        "--feedback",
        "@said.txt",
        "--correction",
        "42 km",
        "-s",
        "ready",
        "--id",
        "my-report-1",
    )
    asked = fake.last("POST /reef/report")
    assert asked.body == {
        "agent_record_id": "my-report-1",
        "score": 0.0,
        "feedback": {"text": "Use metric units.", "correction": "42 km"},
        "references": ["run:7", RECEIPT],
    }
    assert asked.headers["x-reef-scenario"] == "ready"


def test_an_instruction_is_sent_to_the_scenario(online: RunReef, fake: FakeDaemon) -> None:
    ran = online("train", "Use metric units.")
    assert ran.out == "ready: instruction ask-1 is the next step; see `reef steps`\n"
    asked = fake.last("POST /reef/train")
    assert asked.body == {"text": "Use metric units."}
    assert asked.headers["x-reef-scenario"] == "ready"
    assert online("train", " ").code == 2


def test_the_hint_about_gate_tasks_is_passed_on(online: RunReef, fake: FakeDaemon) -> None:
    fake.routes["POST /reef/report"] = {**fake.routes["POST /reef/report"], "hint": "write gate tasks"}
    ran = online("report", "--score", "1", RECEIPT)
    assert ran.err == "hint: write gate tasks\n"


def test_feedback() -> None:
    assert read_feedback(None, None) is None
    assert read_feedback("plain", None) == "plain"
    assert read_feedback('{"a": 1}', None) == {"a": 1}
    assert read_feedback('{"a": 1}', "right") == {"a": 1, "correction": "right"}
    assert read_feedback(None, "right") == {"correction": "right"}
    with pytest.raises(UsageError, match="starts like JSON"):
        read_feedback('{"a": ', None)
    for file in ("@nothing", "@~nobody-of-that-name/x"):
        with pytest.raises(UsageError, match="cannot read"):
            read_feedback(file, None)


def test_last_passes_over_what_is_no_finished_turn(online: RunReef, fake: FakeDaemon) -> None:
    [good] = fake.routes["GET /reef/records"]["records"]
    others = [
        {**good, "agent_record_id": "x", "kind": "title"},
        {**good, "agent_record_id": "y", "status": "failed"},
    ]
    fake.routes["GET /reef/records"] = {"records": [*others, good]}
    online("report", "--score", "1", "--last")
    assert fake.last("POST /reef/report").body["references"] == [RECEIPT]
    fake.routes["GET /reef/records"] = {"records": others}
    assert online("report", "--score", "1", "--last").code == 4


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ("diff", {"from": "HEAD", "to": C2}),
        ("diff HEAD~1", {"from": "HEAD~1", "to": "HEAD"}),
        ("diff HEAD step:3", {"from": "HEAD", "to": "step:3"}),
        ("diff v1..step:3", {"from": "v1", "to": "step:3"}),
        ("diff ..step:3", {"from": "HEAD", "to": "step:3"}),
    ],
)
def test_what_a_diff_compares(online: RunReef, fake: FakeDaemon, words: str, query: dict[str, str]) -> None:
    assert online(*words.split()).code == 0
    assert fake.last("GET /reef/scenarios/ready/diff").query == query


def test_a_diff_with_nothing_waiting_is_the_last_release(online: RunReef, fake: FakeDaemon) -> None:
    rows = [
        row
        for row in fake.routes["GET /reef/scenarios/ready/releases"](None)["releases"]
        if not row["pending"]
    ]
    fake.routes["GET /reef/scenarios/ready/releases"] = {"releases": rows}
    fake.routes["GET /reef/scenarios/ready/diff"] = lambda asked: ""
    ran = online("diff")
    assert (ran.out, ran.err) == ("", "HEAD~1 and HEAD are equal\n")
    assert online("promote").code == 4


def test_several_scenarios_must_be_named(online: RunReef, fake: FakeDaemon) -> None:
    fake.routes["GET /reef/scenarios"] = {"scenarios": [{"scenario": "a"}, {"scenario": "b"}]}
    ran = online("log")
    assert (ran.code, ran.err) == (2, "error: there are several scenarios: a, b\nhint: name one: -s a\n")
    fake.routes["GET /reef/scenarios"] = {"scenarios": []}
    assert online("log").code == 4


def test_several_candidates_must_be_named(online: RunReef, fake: FakeDaemon) -> None:
    waiting = fake.routes["GET /reef/scenarios/ready/releases"](None)["releases"][0]
    fake.routes["GET /reef/scenarios/ready/releases"] = {"releases": [{**waiting, "step": 5}, waiting]}
    ran = online("reject")
    assert ran.code == 2
    assert "step:5, step:3" in ran.err
    online("reject", "step:3", "--reason", "no")
    assert fake.last("POST /reef/scenarios/ready/reject").body == {"release_id": "step:3", "reason": "no"}


def test_checkout_writes_files_out(online: RunReef, fake: FakeDaemon, nowhere: Path) -> None:
    ran = online("checkout", "HEAD", "--to", "out")
    assert ran.out == f"1 file of {R1[:10]} in out\n"
    assert (nowhere / "out" / "rules" / "ready-rule.md").read_text() == "Say ready.\n"
    assert online("checkout", "HEAD", "--to", "out").code == 2
    fake.routes["GET /reef/harness"] = {"release_id": R1, "files": {"../evil": "x"}}
    assert online("checkout", "HEAD", "--to", "other").code == 5
    assert not (nowhere / "evil").exists()


def test_checkout_serves(online: RunReef, fake: FakeDaemon) -> None:
    assert online("checkout", "HEAD~1").code == 0
    assert fake.last("POST /reef/scenarios/ready/rollback").body == {"release_id": "HEAD~1"}


def test_steps_json_names_the_reports_of_each(online: RunReef) -> None:
    [step] = json.loads(online("steps", "--json").out)
    assert step["reports"] == ["rep-0"]


def test_env_is_safe_in_a_shell() -> None:
    values = variables("http://127.0.0.1:8900", "a'b$c`d\\ e", "ready")
    text = (
        lines(values, "sh")
        + '\nprintf \'%s|%s|%s\' "$OPENAI_API_KEY" "$OPENAI_BASE_URL" "$ANTHROPIC_BASE_URL"'
    )
    ran = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    assert ran.stdout == "a'b$c`d\\ e|http://127.0.0.1:8900/s/ready/v1|http://127.0.0.1:8900/s/ready"
    assert lines({"A": "it's \\"}, "fish") == "set -gx A 'it\\'s \\\\'"
    assert "REEF_TOKEN" not in variables("http://h", None, None)
    assert all(shlex.split(line)[0] == "export" for line in lines(values, "sh").splitlines())


def test_init_writes_files_that_load(reef: RunReef, nowhere: Path) -> None:
    from daemon.settings.load import load_settings
    from daemon.settings.resolve import recipe_for

    ran = reef("init")
    assert (ran.code, ran.out) == (0, "wrote reef.toml\nwrote tasks.toml\n")
    name, recipe = recipe_for(load_settings(nowhere / "reef.toml").settings, "anything")
    assert (name, recipe.use, recipe.tasks) == ("main", "harness_evolve", nowhere / "tasks.toml")
    assert reef("init").code == 2
    assert reef("init", "--force", "--recipe", "record").code == 0
    assert load_settings(nowhere / "reef.toml").settings.recipe["main"].use == "record"
    assert "one of harness_evolve, record" in reef("init", "--force", "--recipe", "nothing").err
    assert reef("init", "--force", "--agent", "nobody").code == 2


def test_the_tasks_of_init_can_gate(reef: RunReef, nowhere: Path) -> None:
    import tomllib

    reef("init")
    tasks = tomllib.loads((nowhere / "tasks.toml").read_text())["task"]
    assert sum(task["split"] == "gate" for task in tasks) >= 5


def test_a_broken_recipe_is_a_line() -> None:
    told = describe(EntryPoint("broken", "nothing.here:Nothing", "reef.recipes"))
    assert told["error"].startswith("does not load: ModuleNotFoundError")


def test_a_bug_is_one_line_and_exit_70(
    online: RunReef, nowhere: Path, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.routes["GET /reef/scenarios"] = {"unexpected": 1}
    ran = online("log")
    assert ran.code == 70
    assert ran.err.startswith("error: a bug in Reef: KeyError")
    log = nowhere / "home" / "logs" / "cli.log"
    assert str(log) in ran.err
    assert "Traceback" in log.read_text()


def test_a_wrong_token(online: RunReef, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REEF_TOKEN", "wrong")
    ran = online("log")
    assert ran.code == 1
    assert ran.err.startswith("error: the token is wrong\nhint: REEF_TOKEN is not")


def test_a_closed_pipe_is_no_error(fake: FakeDaemon, nowhere: Path) -> None:
    environ = {**os.environ, "REEF_URL": fake.url, "REEF_TOKEN": TOKEN}
    script = "import sys; from reef_cli.main import main; main(sys.argv[1:])"
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-c", script, "log"], env=environ, stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_demo_first_looks_whether_it_can_write(reef: RunReef, nowhere: Path) -> None:
    (nowhere / "demo.json").mkdir()
    ran = reef("demo")
    assert (ran.code, ran.err.splitlines()[0]) == (1, f"error: cannot write {nowhere / 'demo.json'}")
