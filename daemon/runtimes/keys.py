"""Where the key of an upstream comes from: a variable, a file, or each client's own credentials."""

from collections.abc import Mapping

from daemon.settings.model import UpstreamSection
from reef.errors import ConfigError


def key_of(section: UpstreamSection, environ: Mapping[str, str]) -> str | None:
    """The key that an upstream is configured with; None where it needs none, or takes its clients' own.

    Raises:
        ConfigError: the variable is not set, or the file cannot be read or is empty.
    """
    if section.api_key_env is not None:
        if key := environ.get(section.api_key_env, "").strip():
            return key
        raise ConfigError(
            f"upstream `{section.name}` takes its key from {section.api_key_env}, which is not set",
            hint=f"export {section.api_key_env}=..., or leave out api_key_env if it needs no key",
        )
    return _from_file(section) if section.api_key_file is not None else None


def _from_file(section: UpstreamSection) -> str:
    file = section.api_key_file
    assert file is not None
    try:
        key = file.read_text("utf-8").strip()
        why = "" if key else "it is empty"
    except OSError as error:
        why = error.strerror or str(error)
    except UnicodeDecodeError:
        why = "it is not text"
    if not why and not key.isprintable():
        why = "it holds more than one line"
    if why:
        raise ConfigError(
            f"upstream `{section.name}` takes its key from {file}, which cannot be used\n{why}",
            hint="write the key, and nothing else, into that file",
        )
    return key
