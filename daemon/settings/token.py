"""The token that clients show: given, configured, or made once and kept in the home."""

import os
import secrets
from collections.abc import Mapping

from daemon.settings.home import Home, write_atomically
from daemon.settings.model import Settings
from reef.errors import ReefError


def resolve_token(home: Home, settings: Settings, environ: Mapping[str, str] = os.environ) -> str | None:
    """`REEF_TOKEN`, else `[reef] token`, else the file `token` (mode 0600), made at first start.

    None when `[reef] auth = false`. The file always holds the token in use, so that a client in the
    same home finds it without being told.

    Raises:
        ReefError: the file cannot be read or written.
    """
    if not settings.reef.auth:
        return None
    kept = _read(home)
    token = environ.get("REEF_TOKEN") or settings.reef.token or kept or secrets.token_urlsafe(32)
    if token != kept:
        write_atomically(home.token, token + "\n", mode=0o600)
    return token


def _read(home: Home) -> str | None:
    try:
        return home.token.read_text("utf-8").strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReefError(
            f"cannot read {home.token}\n{error.strerror}", hint="check who owns the home"
        ) from error
