"""A recipe that asks a model needs an upstream whose key is Reef's to use."""

from pathlib import Path

import pytest

from daemon.growth.plugins import check_recipes
from daemon.settings.load import load_settings
from reef.errors import ConfigError

OWN = '[[upstream]]\nname = "own"\nbase_url = "http://h"\nmodel = "m"\nauth = "passthrough"\n'
KEYED = '[[upstream]]\nname = "keyed"\nbase_url = "http://k"\nmodel = "k"\n'
RECIPE = "[recipe.main]\n"
REFLECT = 'proposers = ["reflect"]\n'
TASKS = 'tasks = "tasks.toml"\n'


def check(folder: Path, text: str) -> None:
    (folder / "reef.toml").write_text(text)
    task = '[[task]]\nid = "t"\nprompt = "p"\nevaluator = "exact"\nexpected = "e"\n'
    (folder / "tasks.toml").write_text(task)
    check_recipes(load_settings(folder / "reef.toml"))


@pytest.mark.parametrize(
    "text",
    [
        OWN + RECIPE + REFLECT,
        OWN + RECIPE + TASKS,
        OWN + KEYED + RECIPE + REFLECT + 'model = "m"\n',
        OWN + 'models = ["claude-*"]\n' + KEYED + RECIPE + REFLECT + 'model = "claude-x"\n',
        OWN + KEYED + RECIPE + REFLECT + 'upstream = "own"\n',
        OWN + KEYED + RECIPE + REFLECT + '[[scenario]]\nmatch = "*"\nrecipe = "main"\nupstream = "own"\n',
    ],
)
def test_it_is_refused_where_only_clients_have_a_key(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"reef.toml:\d+ .*`main` calls a model, and upstream `own`"
    ) as caught:
        check(tmp_path, text)
    assert "api_key_env" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        OWN + RECIPE,
        OWN + KEYED + RECIPE + REFLECT + 'upstream = "keyed"\n',
        OWN + RECIPE + 'use = "record"\n' + TASKS,
        OWN + KEYED + RECIPE + REFLECT + TASKS,
        OWN + '[reef]\nmodel_path = "m.gguf"\n' + RECIPE + TASKS,
        RECIPE + TASKS,
    ],
)
def test_it_is_fine_where_none_is_needed_or_another_upstream_has_one(tmp_path: Path, text: str) -> None:
    check(tmp_path, text)
