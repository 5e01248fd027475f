"""Where an upstream says that its key is: one place, and never the key itself.

Nothing of a wrong value is told: it may be the key.
"""

import re
from pathlib import Path

from daemon.scrub import find_credential, is_key
from daemon.settings.model import UpstreamSection
from daemon.settings.where import Where

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"\$(?:\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))")
"""A variable as a shell writes its value."""
_LONG = 24
"""Characters of a word, with digits in it, that no name of a variable has."""
_HOLD = "put the key into a variable or a file of its own, and name that"


def check_key(upstream: UpstreamSection, index: int, where: Where) -> None:
    """Raise `ConfigError` for settings of the key that contradict each other, or hold the key itself."""
    sources = [name for name in ("api_key_env", "api_key_file") if getattr(upstream, name) is not None]
    if upstream.auth == "passthrough" and sources:
        raise where.error(
            ("upstream", index, sources[0]),
            f'`auth = "passthrough"` sends the client\'s own credentials, and `{sources[0]}` another key',
            hint="leave one of them out",
        )
    if upstream.api_key_env is not None:
        _check_variable(upstream.api_key_env, index, where)
    file = upstream.api_key_file
    if file is not None and (is_key(file.name) or find_credential(str(file))) and not _exists(file):
        raise where.error(
            ("upstream", index, "api_key_file"),
            "the value of `api_key_file` looks like a key; it takes the path of a file that holds the key",
            hint=_HOLD,
        )
    if len(sources) > 1:
        raise where.error(
            ("upstream", index, sources[1]),
            f"`{sources[0]}` and `{sources[1]}` each name a key",
            hint="leave one of them out",
        )


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # too long for a name
        return False


def _check_variable(name: str, index: int, where: Where) -> None:
    at = ("upstream", index, "api_key_env")
    if not name.strip():
        hint = "name the variable that holds the key, or leave it out"
        raise where.error(at, "`api_key_env` is empty", hint=hint)
    if is_key(name, least=_LONG if _NAME.fullmatch(name) else 16):
        raise where.error(
            at,
            "the value of `api_key_env` looks like a key; it takes the name of a variable that holds the key",
            hint=_HOLD,
        )
    if not _NAME.fullmatch(name):
        quoted = _QUOTED.fullmatch(name.strip())
        plain = (quoted[1] or quoted[2]) if quoted else name.strip()
        hint = f"write it as {plain}" if _NAME.fullmatch(plain) else "for example OPENAI_API_KEY"
        raise where.error(
            at, "`api_key_env` takes the name of a variable, and its value can be none", hint=hint
        )
