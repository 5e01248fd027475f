"""A key in the wrong place of the configuration: no screen and no log has it."""

import pytest

from tests.e2e.terminal import Terminal

KEY = "sk-ant-api03-" + "x9Ab" * 20
UPSTREAM = '[[upstream]]\nname = "a"\nbase_url = "http://127.0.0.1:9"\n'


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (
            f'{UPSTREAM}api_key_env = "{KEY}"\n',
            (),
            "reef.toml:4 [[upstream]]: the value of `api_key_env` looks",
        ),
        (f'[[upstream]]\nname = "a"\nbase_url = "http:{KEY}"\n', (), "reef.toml:3 [[upstream]]: "),
        (f'[reef]\n"{KEY}" = 1\n', (), "reef.toml:2 [reef]: `[masked by reef]` is not a setting"),
        (f'{UPSTREAM}fallback = ["{KEY}"]\n', (), "there is no upstream `[masked by reef]`"),
        ("", ("--upstream", "http://h", "--upstream-key-env", KEY), "--upstream-key-env: the value of"),
        ("", (f"--reef.{KEY}", "1"), "is not a setting"),
        ("", (KEY,), "is not understood"),
    ],
)
def test_a_key_in_the_wrong_place(here: Terminal, text: str, words: tuple[str, ...], told: str) -> None:
    (here.folder / "reef.toml").write_text(text)
    said = here.refused("up", "--port", "0", *words, code=2)
    assert told in said
    logged = (here.home / "logs" / "daemon.log").read_text()
    assert told in logged
    ran = here.reef("serve", "--port", "0", *words, code=2)
    assert told in ran.err
    everything = said + logged + ran.out + ran.err
    assert not any(KEY[at : at + 12] in everything for at in range(len(KEY) - 11))


def test_the_address_of_a_request_is_refused_at_the_start(here: Terminal) -> None:
    said = here.refused(
        "up", "--port", "0", "--upstream", "https://api.openai.com/v1/chat/completions", code=2
    )
    assert "hint: the base_url is https://api.openai.com/v1\n" in said
