"""What programs that Reef starts get of the environment: all but the keys that are Reef's to use."""

from collections.abc import Collection, Mapping

from daemon.settings.home import Home
from daemon.settings.load import find_config, load_settings
from daemon.settings.model import UpstreamSection
from reef.errors import ReefError

_OWN = "REEF_"
_KEYS = ("_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN")
"""How providers end the names of their variables. `HF_TOKEN` is none of them: vLLM fetches models with it."""


def without_keys(environ: Mapping[str, str], named: Collection[str] = ()) -> dict[str, str]:
    """The environment without Reef's own variables, providers' keys, and those that are `named`."""
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(_OWN) and not name.endswith(_KEYS) and name not in named
    }


def key_names(upstreams: Collection[UpstreamSection]) -> frozenset[str]:
    """The variables that upstreams take their keys from."""
    return frozenset(section.api_key_env for section in upstreams if section.api_key_env)


def configured_key_names() -> frozenset[str]:
    """As `key_names`, of the configuration that applies in the working folder. None where it cannot be read:
    then no daemon starts with it either."""
    try:
        return key_names(load_settings(find_config(None, Home.find())).settings.upstream)
    except ReefError:
        return frozenset()
