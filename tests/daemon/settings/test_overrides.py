"""What flags and words set: they beat the file, and name themselves where they are wrong."""

from pathlib import Path

import pytest

from daemon.settings.load import load_settings
from daemon.settings.overrides import Flags
from reef.errors import ConfigError
from tests.daemon.settings.loading import EXAMPLE, load


def test_overrides_beat_the_file_and_name_themselves(folder: Path) -> None:
    words = ["--reef.port", "8901", "--recipe.ready.batch-size=3", "--upstream.0.model", "llama3"]
    settings = load(folder, EXAMPLE, words=words)
    assert (settings.reef.port, settings.recipe["ready"].batch_size) == (8901, 3)
    assert settings.upstream[0].model == "llama3"
    with pytest.raises(ConfigError, match=r"^--reef.prot: `prot` is not a setting"):
        load(folder, EXAMPLE, words=["--reef.prot", "1"])
    with pytest.raises(ConfigError, match=r"`--reef.port` needs a value"):
        load(folder, EXAMPLE, words=["--reef.port", "--reef.host"])
    with pytest.raises(ConfigError, match="`port` is not understood"):
        load(folder, EXAMPLE, words=["port"])


def test_overrides_add_the_next_entry_of_a_list(folder: Path) -> None:
    words = ["--upstream.0.name", "a", "--upstream.0.base_url=http://h", "--budget.0.tokens_per_day", "5"]
    words += ["--upstream.0.models.0", "x-*", "--recipe.mine.seed.0.id=s", "--recipe.mine.seed.0.name=rules"]
    settings = load_settings(None, words=words).settings
    assert [(each.name, each.models) for each in settings.upstream] == [("a", ("x-*",))]
    assert settings.budget[0].tokens_per_day == 5
    assert settings.recipe["mine"].seed[0].id == "s"
    words = ["--upstream.1.name", "b", "--upstream.1.base_url", "http://h:2"]
    assert [each.name for each in load(folder, EXAMPLE, words=words).upstream] == ["main", "b"]
    whole = ["--upstream.0", '{name = "c", base_url = "http://h"}']
    assert load_settings(None, words=whole).settings.upstream[0].name == "c"


def test_a_word_is_taken_as_what_belongs_there(folder: Path) -> None:
    words = ["--reef.token", "12345678", "--upstream.0.models", "zz-*", "--upstream.0.alias.gpt-4.1", "5"]
    settings = load(folder, EXAMPLE, words=[*words, "--upstream.0.model=true"])
    assert settings.reef.token == "12345678"
    upstream = settings.upstream[0]
    assert (upstream.models, upstream.alias, upstream.model) == (("zz-*",), {"gpt-4.1": "5"}, "true")


def test_names_of_the_users_own_stay_as_they_are(folder: Path) -> None:
    words = ["--upstream.0.alias.claude-sonnet-4-5", "qwen", '--upstream.0.alias."gpt-4.1"=qwen']
    assert load(folder, EXAMPLE, words=words).upstream[0].alias == {
        "claude-sonnet-4-5": "qwen",
        "gpt-4.1": "qwen",
    }
    words = [
        "--upstream.0.alias.org/model",
        "a",
        "--upstream.0.alias.qwen2:7b=b",
        "--upstream.0.alias.a@b",
        "c",
    ]
    assert load(folder, EXAMPLE, words=words).upstream[0].alias == {
        "org/model": "a",
        "qwen2:7b": "b",
        "a@b": "c",
    }
    with pytest.raises(ConfigError, match="is not understood"):
        load(folder, EXAMPLE, words=['--upstream.0.alias."gpt', "x"])
    assert "re-view" in load(folder, EXAMPLE, words=["--recipe.re-view.batch-size", "3"]).recipe


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            ["--upstream.0.name", "a"],
            "--upstream.0.name: `base_url` is missing",
            "--upstream.0.base_url VALUE",
        ),
        (["--upstream.1.name", "a"], "--upstream.1.name: `upstream` has no number 1", "--upstream.0"),
        (["--upstream.name", "a"], "--upstream.name: `upstream` is a list", "--upstream.0.name"),
        (["--budget.0.tokns", "5"], "--budget.0.tokns: `tokns` is not a setting", "known here"),
        (["--upstream.0", "a"], "--upstream.0: `upstream` must be a section", "write [[upstream]], with"),
        (["--reef.port.x", "5"], "--reef.port.x: `port` must be a valid integer", "for example"),
        (
            ["--upstream.0.name=", "--upstream.0.base_url=http://h"],
            "--upstream.0.name: `name` is empty",
            "main",
        ),
    ],
)
def test_what_is_wrong_with_an_entry_that_flags_make(words: list[str], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(None, words=words)
    assert caught.value.message.startswith(message)
    assert hint in caught.value.hint


def test_a_relative_path_of_an_override_counts_from_the_working_folder(folder: Path) -> None:
    below = folder / "below"
    below.mkdir()
    settings = load(below, "[reef]\nmodel_path = 'a.gguf'\n")
    assert settings.reef.model_path == below / "a.gguf"
    settings = load(below, "[reef]\nmodel_path = 'a.gguf'\n", words=["--reef.model_path", "b.gguf"])
    assert settings.reef.model_path == folder / "b.gguf"
    settings = load(below, "[reef]\nmodel_path = '~nobody-of-that-name/a.gguf'\n")
    assert settings.reef.model_path == below / "~nobody-of-that-name" / "a.gguf"


def test_flags(folder: Path) -> None:
    flags = Flags(
        port=0, upstream="http://h:1", api=("chat",), model="m", upstream_key_env="KEY", no_auth=True
    )
    settings = load(folder, EXAMPLE, flags=flags)
    [upstream] = settings.upstream
    assert (upstream.name, upstream.base_url, upstream.model) == ("main", "http://h:1", "m")
    assert (upstream.api, upstream.api_key_env) == (("chat",), "KEY")
    assert (settings.reef.port, settings.reef.auth) == (0, False)
    assert load(folder, EXAMPLE, flags=Flags(model="m")).upstream[0].model == "m"
    assert load_settings(None, flags=Flags(model="m")).settings.reef.model == "m"
    assert load_settings(None, flags=Flags(engine="vllm")).settings.engine.kind == "vllm"
    with pytest.raises(ConfigError, match="without an upstream"):
        load_settings(None, flags=Flags(api=("chat",)))
    with pytest.raises(ConfigError, match=r"^--upstream: `nowhere` is no http address"):
        load_settings(None, flags=Flags(upstream="nowhere"))
