"""Where the key of an upstream comes from: a variable, a file, or each client's own credentials."""

from collections.abc import Mapping

from daemon.settings.load import Loaded
from daemon.settings.model import UpstreamSection
from reef.errors import ConfigError


def key_of(section: UpstreamSection, environ: Mapping[str, str]) -> str | None:
    """The key that an upstream is configured with; None where it needs none, or takes its clients' own.

    Raises:
        ConfigError: the variable is not set, the file cannot be read or is empty, or it is no key.
    """
    variable = section.api_key_env
    if variable is not None:
        key = environ.get(variable, "").strip()
        if not key:
            raise ConfigError(
                f"upstream `{section.name}` takes its key from {variable}, which is not set",
                hint=f"export {variable}=..., or leave out api_key_env if it needs no key",
            )
        if why := _not_a_key(key):
            raise ConfigError(
                f"upstream `{section.name}` takes its key from {variable}, which cannot be used\n{why}",
                hint=f"set {variable} to the key and nothing else",
            )
        return key
    return _from_file(section) if section.api_key_file is not None else None


def check_keys(loaded: Loaded, environ: Mapping[str, str]) -> list[str]:
    """What a start would miss of the keys that are configured: variables that are not set, a sentence each.

    Raises:
        ConfigError: a key is there and cannot be used, or a file of one cannot be read; names the line.
    """
    missing: list[str] = []
    for index, section in enumerate(loaded.settings.upstream):
        variable = section.api_key_env
        if variable is not None and not environ.get(variable, "").strip():
            missing.append(f"upstream `{section.name}` takes its key from {variable}, which is not set here")
            continue
        try:
            key_of(section, environ)
        except ConfigError as error:
            key = "api_key_file" if variable is None else "api_key_env"
            raise loaded.where.error(("upstream", index, key), error.message, hint=error.hint) from error
    return missing


def _from_file(section: UpstreamSection) -> str:
    file = section.api_key_file
    assert file is not None
    try:
        key = file.read_text("utf-8").strip()
        why = _not_a_key(key) if key else "it is empty"
    except OSError as error:
        why = error.strerror or str(error)
    except UnicodeDecodeError:
        why = "it is not text"
    if why:
        raise ConfigError(
            f"upstream `{section.name}` takes its key from {file}, which cannot be used\n{why}",
            hint="write the key, and nothing else, into that file",
        )
    return key


def _not_a_key(key: str) -> str:
    """Why a text cannot stand in a header; empty where it can."""
    if not key.isprintable():
        return "it holds more than one line"
    return "" if key.isascii() else "it holds characters that no key has"
