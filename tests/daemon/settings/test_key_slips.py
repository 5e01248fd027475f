"""A key that stands where its variable, its file or an address belongs is refused, and never told."""

from pathlib import Path

import pytest

from daemon.settings.load import load_settings
from daemon.settings.overrides import Flags
from reef.errors import ConfigError
from tests.daemon.settings.loading import load

KEYS = [
    "sk-ant-api03-" + "x9Ab" * 20,
    "sk-proj-abcDEF0123456789abcdef",
    "gsk_" + "a1B2c3" * 8,
    "AIza" + "x" * 35,
    "hf_" + "aB" * 17,
    "AKIA" + "ABCD" * 4,
    "xai-" + "Z9y8" * 20,
    "0123456789abcdef" * 2,
    "eyJhbGciOiJI" + "a1" * 200 + ".eyJzdWIiOiIx.SflKxwRJSMeKKF2QT4",
]
UPSTREAM = '[[upstream]]\nname = "a"\nbase_url = "http://h"\n'


def refusal(folder: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    return caught.value


def shows(error: ConfigError, key: str) -> bool:
    """Whether a part of the key that says something of it is told."""
    said = f"{error.message}\n{error.hint}"
    return any(key[at : at + 12] in said for at in range(len(key) - 11))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("setting", ["api_key_env", "api_key_file"])
def test_a_key_in_place_of_its_name(folder: Path, setting: str, key: str) -> None:
    error = refusal(folder, f'{UPSTREAM}{setting} = "{key}"\n')
    assert error.message.startswith(f"reef.toml:4 [[upstream]]: the value of `{setting}` looks like a key")
    assert ("name of a variable" if setting == "api_key_env" else "path of a file") in error.message
    assert "name that" in error.hint
    assert not shows(error, key)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_by_a_flag(folder: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=r"^--upstream-key-env: the value of .*looks like a key") as caught:
        load_settings(None, flags=Flags(upstream="http://h", upstream_key_env=key))
    assert not shows(caught.value, key)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_place_of_an_address(folder: Path, key: str) -> None:
    error = refusal(folder, f'[[upstream]]\nname = "a"\nbase_url = "{key}"\n')
    assert error.message == "reef.toml:3 [[upstream]]: the address of an upstream looks like a key"
    assert not shows(error, key)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("my key", "for example OPENAI_API_KEY"),
        ("KEY=x", "for example OPENAI_API_KEY"),
        ("1KEY", "for example OPENAI_API_KEY"),
        (" KEY ", "write it as KEY"),
        ("$MY_KEY", "write it as MY_KEY"),
        ("${MY_KEY}", "write it as MY_KEY"),
    ],
)
def test_what_can_be_no_variables_name(folder: Path, name: str, hint: str) -> None:
    error = refusal(folder, f'{UPSTREAM}api_key_env = "{name}"\n')
    assert error.message.startswith("reef.toml:4 [[upstream]]: `api_key_env` takes the name of a variable")
    assert error.hint == hint


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "_k",
        "openai_api_key_for_project_2",
        "AZURE_OPENAI_KEY_EASTUS2",
        "K1",
        "MyCompanyOpenaiKey1",
        "azureopenaikey2024",
        "OPENAI_KEY_us_east1_production1234567",
    ],
)
def test_a_name_is_a_name(folder: Path, name: str) -> None:
    assert load(folder, f'{UPSTREAM}api_key_env = "{name}"\n').upstream[0].api_key_env == name


def test_a_file_may_have_any_name(folder: Path) -> None:
    (folder / KEYS[2]).write_text("k")
    assert load(folder, f'{UPSTREAM}api_key_file = "{KEYS[2]}"\n').upstream[0].api_key_file
    assert load(folder, f'{UPSTREAM}api_key_file = "keys/not-there-yet.txt"\n').upstream[0].api_key_file


@pytest.mark.parametrize("setting", ["api_key_env", "api_key_file"])
def test_a_wrong_kind_of_value_is_not_told_where_it_may_be_a_key(folder: Path, setting: str) -> None:
    error = refusal(folder, f'{UPSTREAM}{setting} = ["0123456789abcdef0123"]\n')
    assert error.message.startswith(f"reef.toml:4 [[upstream]]: `{setting}` ")
    assert "0123" not in error.message + error.hint


def test_a_token_is_not_told(folder: Path) -> None:
    error = refusal(folder, "[reef]\ntoken = 1234567890\n")
    assert error.message == "reef.toml:2 [reef]: `token` must be a valid string"
    error = refusal(folder, f'[reef]\nport = "{KEYS[3]}"\n')
    assert "`port` must be a valid integer, not" in error.message
    assert not shows(error, KEYS[3])
