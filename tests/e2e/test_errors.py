"""What goes wrong on a user's machine: one error, its remedy, an exit code, never a traceback."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import anthropic
import openai
import pytest

from reef.home import is_running, read_daemon
from tests.e2e.running import free_port, wait_for
from tests.e2e.terminal import Terminal
from tests.stub_provider import Asked, Fault, Reply, StubProvider

CHAT = [{"role": "user", "content": "hi"}]
RECIPE = """
[[scenario]]
match = "*"
recipe = "main"
[recipe.main]
{}
"""
TASK = '\n[[task]]\nid = "t-1"\nprompt = "Say ready."\n{}\nsplit = "gate"\n'


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProvider]:
    with StubProvider() as provider:
        yield provider


def nothing_runs(here: Terminal) -> None:
    assert not is_running(here.home)
    assert not (here.home / "daemon.json").exists()


def check_key(asked: Asked) -> Fault | Reply:
    right = "Bearer sk-right" in asked.headers.get("authorization", "")
    return Reply("hello") if right else Fault(401, "Incorrect API key provided")


def test_a_wrong_key(here: Terminal) -> None:
    """The upstream's 401 is the SDK's usual exception; Reef's own token is not to blame."""
    here.environ["KEY"] = "sk-wrong"
    with StubProvider(check_key) as stub:
        here.up("--upstream", stub.url, "--model", "M", "--upstream-key-env", "KEY")
        with openai.OpenAI(base_url=f"{here.url}/v1", api_key=here.token, max_retries=0) as gpt:
            with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided"):
                gpt.chat.completions.create(model="m", messages=CHAT)
            with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided"):
                list(gpt.chat.completions.create(model="m", messages=CHAT, stream=True))
        with (
            anthropic.Anthropic(base_url=here.url, api_key=here.token, max_retries=0) as claude,
            pytest.raises(anthropic.AuthenticationError, match="Incorrect API key provided"),
        ):
            claude.messages.create(model="m", max_tokens=9, messages=CHAT)


def test_a_key_that_the_upstream_refuses_at_once(here: Terminal) -> None:
    with StubProvider() as stub:
        stub.key = "sk-right"
        here.environ["KEY"] = "sk-wrong"
        words = ("up", "--port", "0", "--upstream", stub.url, "--upstream-key-env", "KEY")
        ran = here.reef(*words, code=1)
        assert "does not accept the key it is given (from KEY)" in ran.err
        assert ran.err.endswith("hint: `reef down`, set KEY to the right key, `reef up`\n")
        here.reef("down")
    del here.environ["KEY"]
    assert "takes its key from KEY, which is not set" in here.refused(*words, code=2)


def test_a_dead_upstream(here: Terminal, stub: StubProvider) -> None:
    """`reef up` says so; the daemon serves what it can, and the upstream once it is there."""
    dead = f"http://127.0.0.1:{free_port()}"
    ran = here.reef("up", "--port", "0", "--upstream", dead, "--model", "M", code=1)
    assert f"error: upstream `main` at {dead}/v1 refused the connection" in ran.err
    assert ran.err.rstrip().splitlines()[-1].startswith("hint: check that it runs")
    with openai.OpenAI(base_url=f"{here.url}/v1", api_key=here.token, max_retries=0) as gpt:
        with pytest.raises(openai.InternalServerError, match="refused the connection") as caught:
            gpt.chat.completions.create(model="m", messages=CHAT)
        assert caught.value.status_code == 502
    assert here.reef("status", "--json").json["runtime"]["upstreams"][0]["state"] == "down"
    [record] = here.reef("records", "--json").json["records"]
    assert record["status"] == "failed"
    assert "no finished turn" in here.refused("report", "--score", "1", "--last", code=4)
    with StubProvider(port=int(dead.rpartition(":")[2])):
        assert here.ask("hi")[0] == "echo: hi"
        assert "already up" in here.reef("up").err


def test_a_wrong_token(here: Terminal, stub: StubProvider) -> None:
    here.up("--upstream", stub.url)
    here.environ["REEF_TOKEN"] = "wrong"
    for words in (("log",), ("status",), ("report", "--last", "--score", "1")):
        assert "unset it" in here.refused(*words)


MISTAKES = {
    "evaluator's name": ('evaluator = "exakt"\nexpected = "ready"', "exakt", "exact"),
    "evaluator": ('evalutor = "exact"\nexpected = "ready"', "evalutor", "evaluator"),
    "argument": ('evaluator = "exact"\nexpectd = "ready"', "expectd", "expected"),
    "split": ('evaluator = "exact"\nexpected = "ready"\nspilt = "dev"', "spilt", "split"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_typo_in_a_task(here: Terminal, stub: StubProvider, mistake: str) -> None:
    lines, wrong, right = MISTAKES[mistake]
    good = 'evaluator = "exact"\nexpected = "ready"'
    (here.folder / "tasks.toml").write_text(TASK.format(good).replace("t-1", "t-0") + TASK.format(lines))
    (here.folder / "reef.toml").write_text(RECIPE.format('tasks = "tasks.toml"'))
    told = here.refused("up", "--port", "0", "--upstream", stub.url, code=2)
    assert "tasks.toml:9: task `t-1`" in told
    assert f"`{wrong}`" in told
    assert f"did you mean `{right}`?" in told
    nothing_runs(here)
    checked = here.run([sys.executable, "-m", "daemon", "check-config"])
    assert checked.code == 2
    assert f"`{wrong}`" in checked.err


def test_check_config_looks_for_the_keys(here: Terminal) -> None:
    """A file that is missing is an error there as it is for `reef up`; a variable may be set elsewhere."""
    check = [sys.executable, "-m", "daemon", "check-config"]
    upstream = '[[upstream]]\nname = "a"\nbase_url = "http://127.0.0.1:1"\n'
    (here.folder / "reef.toml").write_text(upstream + 'api_key_file = "key"\n')
    for done in (here.run(check), here.reef("up", "--port", "0", code=2)):
        assert done.code == 2
        assert "reef.toml:4 [[upstream]]: upstream `a` takes its key from" in done.err
    (here.folder / "key").write_text("sk-1\n")
    assert here.run(check).code == 0
    (here.folder / "reef.toml").write_text(upstream + 'api_key_env = "NO_SUCH_KEY"\n')
    checked = here.run(check)
    assert (checked.code, checked.out.endswith("ok\n")) == (0, True)
    assert "warning: upstream `a` takes its key from NO_SUCH_KEY, which is not set here" in checked.err


def test_a_typo_that_came_while_the_daemon_ran(here: Terminal, stub: StubProvider) -> None:
    """The report is kept; what is wrong is told with it, and the step ends with it."""
    tasks = here.folder / "tasks.toml"
    tasks.write_text("")
    (here.folder / "reef.toml").write_text(RECIPE.format('tasks = "tasks.toml"'))
    here.up("--upstream", stub.url, "--model", "M")
    _, receipt = here.ask("hi")
    tasks.write_text(TASK.format('evaluator = "exact"\nexpectd = "ready"'))
    told = here.reef("report", receipt, "--score", "0", "--feedback", "Be brief.")
    assert "did you mean `expected`?" in told.err

    def failed() -> str | None:
        rows = here.reef("steps", "--json").json
        return rows[0]["decision"] if rows and rows[0]["outcome"] == "error" else None

    assert "`expectd`" in wait_for(failed, "the step")
    tasks.write_text(TASK.format('evaluator = "exact"\nexpected = "ready"'))
    here.reef("step", "1", "--run")
    wait_for(lambda: here.reef("pending", "--json").json["default"]["reviews"] or None, "a review")


CONFIGURATIONS = {
    "a wrong type": ('[reef]\nport = "high"\n', "reef.toml:2 [reef]: `port` must be", "port = 8900"),
    "an unknown key": ("[reef]\nprot = 1\n", "`prot` is not a setting", "did you mean `port`?"),
    "not TOML": ("[reef\n", "reef.toml:1", "not valid TOML"),
    "an unknown recipe": (RECIPE.format('use = "harnes_evolve"'), "`harnes_evolve`", "`harness_evolve`"),
    "a recipe without a section": (
        '[[scenario]]\nmatch = "*"\nrecipe = "mian"\n[recipe.main]\n',
        "reef.toml:3",
        "`main`",
    ),
    "canary": (RECIPE.format('publish = "canary"'), '`publish = "canary"` is not', '"review"'),
    "an unknown option": (RECIPE.format("max_scroe = 1"), "`max_scroe` is not a setting", "`max_score`"),
    "an unknown adapter": (RECIPE.format('adapter = "chta"'), "`chta`", "chat"),
    "an unknown policy": (RECIPE.format('gate = {policy = "sequental"}'), "`sequental`", "sequential"),
    "no tasks": (RECIPE.format('tasks = "nowhere.toml"'), "nowhere.toml", "reef init"),
    "a wrong seed": (
        RECIPE.format('[[recipe.main.seed]]\nid = "a b"\nname = "rules"\nconfig = {text = "x"}'),
        "reef.toml:6",
        "a-z",
    ),
    "a wrong kind of seed": (
        RECIPE.format('[[recipe.main.seed]]\nid = "a"\nname = "rule"\nconfig = {text = "x"}'),
        "reef.toml:8 [[recipe.main.seed]]: `name` must be 'rules', 'skill'",
        "docs/reference/configuration.md",
    ),
    "a password in an address": (
        '[[upstream]]\nname = "a"\nbase_url = "http://me:hunter2@localhost"\n',
        "reef.toml:3",
        "api_key_env",
    ),
    "no address": ('[[upstream]]\nname = "a"\nbase_url = "localhost"\n', "reef.toml:3", "http://"),
}


@pytest.mark.parametrize("mistake", CONFIGURATIONS)
def test_a_wrong_configuration(here: Terminal, mistake: str) -> None:
    text, what, remedy = CONFIGURATIONS[mistake]
    (here.folder / "reef.toml").write_text(text)
    told = here.refused("up", code=2)
    assert what in told
    assert remedy in told.partition("hint: ")[2]
    nothing_runs(here)


def test_a_missing_model(here: Terminal, stub: StubProvider) -> None:
    assert "reef models add" in here.refused("up", "--port", "0", "--reef.model_path", "no.gguf", code=4)
    (here.folder / "not.gguf").write_text("nothing")
    told = here.refused("up", "--port", "0", "--reef.model_path", "not.gguf", code=4)
    assert "is not a GGUF file" in told
    nothing_runs(here)
    assert "one of: smollm2" in here.refused("models", "add", "smollm3", code=4)


def test_a_port_in_use(here: Terminal, stub: StubProvider) -> None:
    told = here.refused("up", "--port", str(stub.port), "--upstream", stub.url)
    assert f"cannot listen on 127.0.0.1:{stub.port}" in told
    assert "`reef down` in the folder where it was started" in told
    assert "--port 0" in told
    nothing_runs(here)


def test_a_home_that_cannot_be_written(here: Terminal, stub: StubProvider) -> None:
    (here.folder / "file").write_text("")
    here.environ["REEF_HOME"] = str(here.folder / "file" / "home")
    told = here.refused("up", "--port", "0", "--upstream", stub.url)
    assert "cannot be written" in told
    assert "REEF_HOME" in told


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_home(here: Terminal, stub: StubProvider) -> None:
    here.home.mkdir(mode=0o500)
    assert "cannot be written" in here.refused("up", "--port", "0", "--upstream", stub.url)


def test_no_proxy_to_itself(here: Terminal, stub: StubProvider) -> None:
    here.up("--upstream", stub.url)
    done = subprocess.run(
        ["sh", "-c", 'eval "$("$1" env)"; REEF_HOME=$2 exec "$1" up --port 0', "sh",
         here.reef_path, str(here.folder / "second")],
        cwd=here.folder, env=here.environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done
    assert "leads back to a Reef" in done.stderr
    assert "unset OPENAI_BASE_URL OPENAI_API_KEY ANTHROPIC_BASE_URL ANTHROPIC_API_KEY" in done.stderr
    assert not is_running(here.folder / "second")
    told = here.reef("up", "--port", "0", "--upstream", here.url, code=0)
    assert "already up" in told.err


def test_names_that_are_not_there(here: Terminal, stub: StubProvider) -> None:
    here.up("--upstream", stub.url)
    here.ask("hi")
    for words in (
        "show abcdef", "checkout step:9", "checkout HEAD~7", "diff HEAD~7 HEAD", "promote step:9", "reject",
        "log -s nowhere", "steps -s nowhere", "pending -s nowhere", "records -s nowhere", "show -s nowhere",
        "scenarios show nowhere", "scenarios archive nowhere", "step 9", "explain nothing", "checkout v1.0",
    ):  # fmt: skip
        here.refused(*words.split(), code=4)
    here.refused("report", "nothing", "--score", "1", code=4)
    here.refused("scenarios", "create", "../x")
    here.refused("report", "--score", "1", code=2)
    assert "did you mean `reef log`?" in here.refused("lgo", code=2)
    here.ask("hi", scenario="second")
    assert "name one: -s default" in here.refused("log", code=2)


def test_no_daemon(here: Terminal) -> None:
    for words in (("log",), ("report", "--last", "--score", "1"), ("env",), ("status",), ("pending",)):
        assert "reef up" in here.refused(*words, code=3)
    assert here.reef("down").out.startswith("no Reef daemon runs in")


def test_two_at_once(here: Terminal, stub: StubProvider) -> None:
    """Both ask for a daemon, one starts it, the other waits for it."""
    words = ("up", "--port", "0", "--upstream", stub.url)
    with ThreadPoolExecutor(2) as pool:
        ran = list(pool.map(lambda _: here.reef(*words), range(2)))
    daemon = read_daemon(here.home)
    assert daemon is not None
    assert all(daemon.url in each.out for each in ran)
    assert "already up" in ran[0].err + ran[1].err
    assert here.ask("hi")[0] == "echo: hi"
    log = (here.home / "logs" / "daemon.log").read_text()
    assert "Traceback" not in log


@pytest.mark.parametrize("url", ["http://u:p@h:99999/", "http://[::1", "http://a b/v1", "h:1"])
def test_what_is_no_address_of_an_upstream(here: Terminal, url: str) -> None:
    assert f"`{url}` is no http address" in here.refused("up", "--port", "0", "--upstream", url, code=2)
    here.environ["REEF_UPSTREAM_URL"] = url
    assert f"`{url}` is no http address" in here.refused("up", "--port", "0", code=2)
    nothing_runs(here)


def test_a_second_daemon_on_the_same_home(here: Terminal, stub: StubProvider) -> None:
    here.up("--upstream", stub.url)
    told = here.refused("serve", "--port", "0", "--upstream", stub.url)
    assert here.url in told
    assert "reef down" in told
    assert here.ask("hi")[0] == "echo: hi"


def test_a_damaged_database(here: Terminal, stub: StubProvider) -> None:
    here.home.mkdir()
    (here.home / "reef.db").write_bytes(b"this is no database at all, " * 200)
    told = here.refused("up", "--port", "0", "--upstream", stub.url)
    assert f"{here.home / 'reef.db'} cannot be opened" in told
    assert "move it away" in told
    (here.home / "reef.db").unlink()
    here.up("--upstream", stub.url)


def test_a_damaged_daemon_json(here: Terminal, stub: StubProvider) -> None:
    """The remedy that the error names works."""
    here.up("--upstream", stub.url)
    (here.home / "daemon.json").write_text("{")
    assert "reef down && reef up" in here.refused("log")
    here.refused("up")
    assert here.reef("down").out.startswith("reef stopped")
    here.up("--upstream", stub.url)
    daemon = read_daemon(here.home)
    assert daemon is not None
    os.kill(daemon.pid, signal.SIGKILL)
    wait_for(lambda: None if is_running(here.home) else True, "its end")
    (here.home / "daemon.json").write_text("{")
    assert "no Reef daemon runs" in here.refused("log", code=3)
    here.up("--upstream", stub.url)
