"""Reading a configuration, and what each mistake in it says."""

import tomllib
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, Field, field_validator, model_validator

from daemon.settings.home import Home
from daemon.settings.load import find_config, load_settings
from daemon.settings.resolve import recipe_for
from reef.errors import ConfigError
from tests.daemon.settings.loading import EXAMPLE, load


def test_the_example_loads_in_toml_and_in_yaml_alike(folder: Path) -> None:
    from_toml = load(folder, EXAMPLE)
    from_yaml = load(folder, yaml.safe_dump(tomllib.loads(EXAMPLE)), "reef.yaml")
    assert from_toml.model_copy(update={"source": None}) == from_yaml.model_copy(update={"source": None})
    assert from_toml.recipe["ready"].tasks == folder / "tasks.toml"
    assert from_toml.recipe["ready"].options() == {"proposers": ["feedback", "demonstrations"]}
    assert from_toml.source == folder / "reef.toml"


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ("port = 8900", "prot = 8900", "reef.toml:2 [reef]: `prot` is not a setting", "did you mean `port`?"),
        ("[reef]", "[reff]", "reef.toml:1: `reff` is not a setting", "did you mean `reef`?"),
        ("port = 8900", 'port = "8900"', "reef.toml:2 [reef]: `port` must be a valid integer", ""),
        (
            "port = 8900",
            "port = 70000",
            "reef.toml:2 [reef]: `port` must be less than or equal to 65535, not 70000",
            "",
        ),
        ("port = 8900", "port = true", "reef.toml:2 [reef]: `port` must be a valid integer, not true", ""),
        ("port = 8900", "port = ", "reef.toml:2: Invalid value", "not valid TOML"),
        (
            "port = 8900\n",
            'port = 8900\n[[price]]\nmodel = "gpt-*"\ninput = 1\noutput = -2\n',
            "reef.toml:6 [[price]]: `output` must be greater than or equal to 0, not -2",
            "docs/reference/configuration.md",
        ),
        (
            "port = 8900\n",
            'port = 8900\n[[price]]\nmodel = "gpt-*"\ninput = 1\noutput = 2\ncache_wirte = 3\n',
            "reef.toml:7 [[price]]: `cache_wirte` is not a setting",
            "did you mean `cache_write`?",
        ),
        (
            'base_url = "http://127.0.0.1:11434"\n',
            "",
            "reef.toml:4 [[upstream]]: `base_url` is missing",
            "base_url = ...",
        ),
        (
            "http://127.0.0.1:11434",
            "127.0.0.1",
            "reef.toml:6 [[upstream]]: `127.0.0.1` is no http address",
            "http://",
        ),
        (
            'api = ["chat"]',
            'api = ["chatt"]',
            "reef.toml:8 [[upstream]]: `api` must be 'chat', 'messages'",
            "",
        ),
        (
            'recipe = "ready"',
            'recipe = "raedy"',
            "reef.toml:12 [[scenario]]: there is no recipe `raedy`",
            "did you mean `ready`?",
        ),
        (
            "proposers =",
            "propsers =",
            "reef.toml:17 [recipe.ready]: `propsers` is not a setting",
            "did you mean `proposers`?",
        ),
        (
            "adapter =",
            "adaptor =",
            "reef.toml:16 [recipe.ready]: `adaptor` is not a setting",
            "did you mean `adapter`?",
        ),
        (
            'proposers = ["feedback", "demonstrations"]',
            "max_score = 'x'",
            "reef.toml:17 [recipe.ready]: `max_score` must be a valid number",
            "",
        ),
        (
            'use = "harness_evolve"',
            'use = "evolve"',
            "reef.toml:15 [recipe.ready]: no recipe named `evolve`",
            "reef recipes",
        ),
        (
            "alpha = 0.05",
            "alpha = 5",
            "reef.toml:22 [recipe.ready.gate]: `alpha` must be less than 1, not 5",
            "",
        ),
        (
            "alpha =",
            "alfa =",
            "reef.toml:22 [recipe.ready.gate]: `alfa` is not a setting",
            "did you mean `alpha`?",
        ),
        ("tasks.toml", "taks.toml", "reef.toml:18 [recipe.ready]: there is no task file", "reef init"),
        (
            'adapter = "chat"',
            'publish = "canary"',
            'reef.toml:16 [recipe.ready]: `publish = "canary"` is not available yet',
            "review",
        ),
        ('id = "style"\n', "", "reef.toml:24 [[recipe.ready.seed]]: `id` is missing", ""),
        (
            "port = 8900",
            'auth = false\nhost = "0.0.0.0"',
            "reef.toml:2 [reef]: `auth = false` would let anyone",
            "127.0.0.1",
        ),
    ],
)
def test_a_mistake_names_file_line_section_and_key(
    folder: Path, old: str, new: str, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(folder, EXAMPLE.replace(old, new, 1))
    assert caught.value.message.startswith(message)
    assert hint in caught.value.hint


def test_two_upstreams_of_one_name(folder: Path) -> None:
    upstream = '[[upstream]]\nname = "a"\nbase_url = "http://h"\n'
    with pytest.raises(ConfigError, match=r"reef.toml:5 \[\[upstream\]\]: two upstreams are named `a`"):
        load(folder, upstream * 2)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('api_key_env = "A"\napi_key_file = "f"', "reef.toml:5 .*each name a key"),
        ('auth = "passthrough"\napi_key_file = "f"', "reef.toml:5 .*the client's own credentials"),
        ('auth = "none"', "reef.toml:4 .*`auth` must be"),
        ('api_key_env = ""', "reef.toml:4 .*`api_key_env` is empty"),
    ],
)
def test_keys_that_contradict(folder: Path, lines: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(folder, f'[[upstream]]\nname = "a"\nbase_url = "http://h"\n{lines}\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('fallback = ["a"]', "reef.toml:4 .*cannot stand in for itself"),
        ('fallback = ["b"]', "reef.toml:4 .*no upstream `b`"),
        ("retries = 11", "reef.toml:4 .*`retries` must be"),
        ("concurrency = 0", "reef.toml:4 .*`concurrency` must be"),
        ('[[scenario]]\nmatch = "*"\nrecipe = "record"\nupstream = "b"', "reef.toml:7 .*no upstream `b`"),
        ('[reef]\nrelay = ["files"]', "reef.toml:5 .*`relay` "),
        ('[recipe.x]\nupstream = "b"', "reef.toml:5 .*no upstream `b`"),
    ],
)
def test_upstreams_that_are_named_must_be_there(folder: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(folder, f'[[upstream]]\nname = "a"\nbase_url = "http://h"\n{text}\n')


def test_a_scenarios_upstream_goes_before_its_recipes(folder: Path) -> None:
    text = "".join(f'[[upstream]]\nname = "{name}"\nbase_url = "http://h"\n' for name in "ab")
    text += '[recipe.x]\nupstream = "a"\n'
    text += '[[scenario]]\nmatch = "own"\nrecipe = "x"\nupstream = "b"\n'
    text += '[[scenario]]\nmatch = "usual"\nrecipe = "x"\n'
    settings = load(folder, text)
    found = [recipe_for(settings, name)[1].upstream for name in ("own", "usual", "neither")]
    assert found == ["b", "a", None]


def test_a_key_file_counts_from_the_files_folder(folder: Path) -> None:
    text = '[[upstream]]\nname = "a"\nbase_url = "http://h"\napi_key_file = "key"\n'
    assert load(folder, text).upstream[0].api_key_file == folder / "key"


def test_yaml_mistakes_have_lines_too(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"reef.yaml:3 \[reef\]: `prot` is not a setting"):
        load(folder, "reef:\n  auth: true\n  prot: 1\n", "reef.yaml")
    with pytest.raises(ConfigError, match=r"reef.yaml:3: `port` is given twice"):
        load(folder, "reef:\n  port: 1\n  port: 2\n", "reef.yaml")
    with pytest.raises(ConfigError, match=r"reef.yaml:3"):
        load(folder, "reef:\n  port: [1\n", "reef.yaml")
    with pytest.raises(ConfigError, match="holds no sections"):
        load(folder, "- 1\n", "reef.yaml")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("reef.toml", b"[reef]\r\n# caf\xe9\r\n", "reef.toml:2: this is not UTF-8 text"),
        ("reef.yaml", b"\xef\xbb\xbfreef:\n  port: 1\n  # caf\xe9\n", "reef.yaml:3: this is not UTF-8 text"),
        ("reef.toml", "[reef]\n".encode("utf-16"), "reef.toml:1: this is not UTF-8 text"),
        ("reef.toml", b"[reef]\ntoken = '''\nx\n", "reef.toml:3: Expected"),
        ("reef.yaml", b"reef:\n  port: \x01\n", "reef.yaml:2: the character #x0001 may not stand there"),
        ("reef.yaml", b"reef:\n  port: 2020-13-45\n", "reef.yaml: month must be in 1..12"),
    ],
)
def test_what_cannot_be_read_has_a_line(folder: Path, name: str, data: bytes, message: str) -> None:
    (folder / name).write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load_settings(folder / name)
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_a_mistake_of_a_section_names_it(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^reef.toml:3 \[\[budget\]\]: this budget bounds nothing"):
        load(folder, "[reef]\nport = 1\n[[budget]]\nhard = true\n")
    with pytest.raises(ConfigError, match=r"^reef.yaml:2 \[\[budget\]\]: this budget bounds nothing"):
        load(folder, "budget:\n- hard: true\n", "reef.yaml")
    with pytest.raises(ConfigError, match=r"^--budget.0.hard: this budget bounds nothing"):
        load_settings(None, words=["--budget.0.hard", "true"])

    class Both(BaseModel):
        a: int = 0

        @model_validator(mode="after")
        def _check(self) -> "Both":
            if self.a:
                raise ValueError("a needs b")
            return self

    with pytest.raises(ConfigError, match=r"^reef.toml:1 \[recipe.x\]: `x` is wrong: a needs b"):
        load(folder, "[recipe.x]\na = 1\n", options_of=lambda _: Both)


def test_a_byte_order_mark_is_no_mistake(folder: Path) -> None:
    assert load(folder, "\ufeff[reef]\nport = 1\n").reef.port == 1
    assert load(folder, "\ufeffreef:\n  port: 1\n", "reef.yaml").reef.port == 1
    with pytest.raises(ConfigError, match=r"reef.toml:1: `reff`"):
        load(folder, "\ufeff[reff]\n")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[reef]\nrelay = ["files"]', '`relay` must begin with `/`, not "files"', ""),
        ('[upstream]\nname = "a"', "`upstream` must be a list", "write [[upstream]]"),
        ("[[reef]]\nport = 1", "`reef` must be a section", "write [reef],"),
        ('[reef]\nhosts = "h"', "`hosts` must be a list", 'write hosts = ["h"]'),
        ("[recipe]\nx = 3", "`x` must be a section", "write [recipe.x],"),
        ("[recipe.x]\nname = ''", "`name` must not be empty", ""),
        ("[recipe.x]\nname = 'abcd'", "`name` must have at most 3 characters", ""),
        ("[recipe.x]\nodd = 2", "`odd` is wrong: two is even, not 2", ""),
    ],
)
def test_a_mistake_is_told_in_plain_words(folder: Path, text: str, message: str, hint: str) -> None:
    class Plain(BaseModel):
        name: str = Field("a", min_length=1, max_length=3)
        odd: int = 1

        @field_validator("odd")
        @classmethod
        def _odd(cls, value: int) -> int:
            if value % 2 == 0:
                raise ValueError("two is even")
            return value

    with pytest.raises(ConfigError) as caught:
        load(folder, text + "\n", options_of=lambda _: Plain)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_which_file(folder: Path) -> None:
    home = Home(folder / "home")
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    assert find_config(None, home, below) is None
    home.create()
    home.config.write_text("")
    assert find_config(None, home, below) == home.config
    (folder / "reef.toml").write_text("")
    assert find_config(None, home, below) == folder / "reef.toml"
    with pytest.raises(ConfigError, match="there is no file"):
        find_config(folder / "nothing.toml", home)


def test_recipe_for(folder: Path) -> None:
    name, recipe = recipe_for(load_settings(None).settings, "anything")
    assert (name, recipe.use, recipe.tasks, recipe.adapter) == (
        "harness_evolve",
        "harness_evolve",
        None,
        "chat",
    )
    assert recipe.options() == {"proposers": ["feedback", "demonstrations"]}
    settings = load(folder, EXAMPLE)
    assert recipe_for(settings, "ready-1")[0] == "ready"
    assert recipe_for(settings, "Ready-1") == ("record", recipe_for(settings, "other")[1])
    first_wins = EXAMPLE.replace(
        "[[scenario]]", '[[scenario]]\nmatch = "*"\nrecipe = "record"\n\n[[scenario]]', 1
    )
    assert recipe_for(load(folder, first_wins), "ready-1")[0] == "record"
