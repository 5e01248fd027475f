"""What `base_url` may be: the base of all requests, and nothing behind it."""

from pathlib import Path

import pytest

from daemon.runtimes.upstream import full_base
from daemon.serving.relay import ALWAYS
from daemon.settings.address import ENDPOINTS
from daemon.settings.load import load_settings
from daemon.settings.overrides import Flags
from daemon.wire.codec import PATHS
from reef.errors import ConfigError
from tests.daemon.settings.loading import load


@pytest.mark.parametrize(
    ("address", "right"),
    [
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1/responses/", "https://api.openai.com/v1"),
        ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/v1/messages/count_tokens", "https://api.anthropic.com/v1"),
        ("http://[::1]:8000/v1/completions", "http://[::1]:8000/v1"),
        ("http://h/chat/completions", "http://h/v1"),
        ("https://h/api/v1//chat/completions/chat/completions", "https://h/api/v1"),
        ("https://h/v1/embeddings", "https://h/v1"),
        ("https://h/a/chat/completions?api-version=2", "https://h/a"),
    ],
)
def test_the_address_of_a_request_is_no_base(folder: Path, address: str, right: str) -> None:
    with pytest.raises(ConfigError, match=r"^reef.toml:3 \[\[upstream\]\]: `.*not the base of all") as caught:
        load(folder, f'[[upstream]]\nname = "a"\nbase_url = "{address}"\n')
    assert caught.value.hint == f"the base_url is {right}"
    assert full_base(right) == right
    with pytest.raises(ConfigError, match=r"^--upstream: `") as caught:
        load_settings(None, flags=Flags(upstream=address))
    assert caught.value.hint == f"the base_url is {right}"
    with pytest.raises(ConfigError, match="an upstream's address is wrong"):  # one of the environment
        full_base(address)


def test_all_that_is_served_is_known() -> None:
    assert {*PATHS, *ALWAYS} <= {*ENDPOINTS}


@pytest.mark.parametrize("address", ["https://h/v1?key=verysecret", "https://h/v1#verysecret"])
def test_what_would_not_be_sent_is_refused(folder: Path, address: str) -> None:
    with pytest.raises(ConfigError, match="goes on after its path") as caught:
        load(folder, f'[[upstream]]\nname = "a"\nbase_url = "{address}"\n')
    assert caught.value.hint == "the base_url is https://h/v1"
    assert "verysecret" not in caught.value.message


@pytest.mark.parametrize("address", ["http://h", "http://h/", "https://h/models", "https://h/api/chat?"])
def test_a_base_is_a_base(folder: Path, address: str) -> None:
    text = f'[[upstream]]\nname = "a"\nbase_url = "{address}"\n'
    assert load(folder, text).upstream[0].base_url == address
