"""Task files are read whole, or say where they are wrong."""

from pathlib import Path

import pytest

from daemon.evaluation.tasks import is_gate_prompt, leaks, load_tasks
from reef.errors import ConfigError

GOOD = """
[[task]]
id = "ready-1"
prompt = "Return exactly: reef is ready"
evaluator = "exact"
expected = "reef is ready"
split = "gate"

[[task]]
id = "n"
messages = [{ role = "system", content = "s" }, { role = "user", content = "2+2?" }]
evaluator = "numeric"
expected = 4
group = "sums"
weight = 2
must_pass = true
"""


def write(tmp_path: Path, text: str, name: str = "tasks.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_toml(tmp_path: Path) -> None:
    one, two = load_tasks(write(tmp_path, GOOD))
    assert one.messages == ({"role": "user", "content": "Return exactly: reef is ready"},)
    assert (one.split, one.unit, one.arguments) == ("gate", "ready-1", {"expected": "reef is ready"})
    assert (two.unit, two.weight, two.must_pass, two.split) == ("sums", 2.0, True, "train")
    assert load_tasks(write(tmp_path, "")) == ()


def test_json_lines(tmp_path: Path) -> None:
    text = '{"id": "a", "prompt": "p\u2028q", "evaluator": "contains", "expected": ["x", "y"]}\n\n'
    assert load_tasks(write(tmp_path, text, "t.jsonl"))[0].arguments == {"expected": ["x", "y"]}


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        (
            GOOD.replace('prompt = "R', 'promt = "R'),
            r"tasks.toml:2: task `ready-1`",
            "did you mean `prompt`?",
        ),
        (
            GOOD.replace("split =", "splitt ="),
            r"tasks.toml:2: task `ready-1`: `splitt`",
            "did you mean `split`?",
        ),
        (GOOD.replace('"gate"', '"gates"'), r"tasks.toml:2: task `ready-1`: `split`", ""),
        (GOOD.replace('"exact"', '"exakt"'), "there is no evaluator `exakt`", "did you mean `exact`?"),
        (
            GOOD.replace("expected = 4", "expect = 4"),
            r"tasks.toml:9: task `n`: `expect`",
            "did you mean `expected`?",
        ),
        (GOOD.replace('id = "n"', 'id = "ready-1"'), r"tasks.toml:9: .*there already, at .*tasks.toml:2", ""),
        (GOOD.replace('id = "n"', 'idd = "n"'), r"tasks.toml:9: `idd`", "did you mean `id`?"),
        (GOOD.replace('id = "n"', ""), r"tasks.toml:9: `id` is missing", ""),
        (GOOD.replace("weight = 2", "weight = -1"), "`weight`", ""),
        (GOOD.replace('prompt = "R', 'prompt = R"'), r"tasks.toml:4: not TOML", ""),
        (GOOD.replace('"exact"', '"nope.module:Class"'), "cannot be loaded", ""),
        (GOOD.replace('"exact"', '"reef.tasks:Task"'), "is not an evaluator", ""),
        ("tasks = []", "`tasks` is not a key", "[[task]]"),
        ("[task]\nid = 1", "must be a list", "[[task]]"),
        (GOOD.replace("must_pass", 'prompt = "x"\nmust_pass'), "either `prompt` or `messages`", ""),
    ],
)
def test_an_error_names_its_place(tmp_path: Path, text: str, says: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load_tasks(write(tmp_path, text))
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("line", "says"), [("{", r"t.jsonl:2: not JSON"), ("[]", r"t.jsonl:2: a task must be")]
)
def test_json_lines_name_the_line(tmp_path: Path, line: str, says: str) -> None:
    first = '{"id": "a", "prompt": "p", "evaluator": "exact", "expected": "x"}'
    with pytest.raises(ConfigError, match=says):
        load_tasks(write(tmp_path, f"{first}\n{line}\n", "t.jsonl"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"# a\n# caf\xe9\n", r"t.toml:2: this is not UTF-8 text"),
        (b"[[task]]\nid = '''\n", r"t.toml:2: not TOML"),
    ],
)
def test_what_cannot_be_read_has_a_line(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "t.toml"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=says):
        load_tasks(path)


def test_unreadable_files(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", write(tmp_path, "", "t.csv")):
        with pytest.raises(ConfigError):
            load_tasks(path)


def test_what_gives_a_gate_task_away(tmp_path: Path) -> None:
    long = "an answer of some length"
    tasks = load_tasks(write(tmp_path, GOOD.replace('"reef is ready"\nsplit', f'["short", "{long}"]\nsplit')))
    assert leaks(tasks) == ("Return exactly: reef is ready", long)
    assert is_gate_prompt(tasks, "return exactly:  REEF is ready")
    assert not is_gate_prompt(tasks, "2+2?")
