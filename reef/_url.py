"""An http address taken apart. Standard library only: every client loads it."""

import re
from urllib.parse import SplitResult, urlsplit

from reef.errors import Invalid

EXAMPLE = "write it like http://127.0.0.1:11434 or https://api.openai.com/v1"
_NEVER = re.compile(r"[\s\x00-\x1f\x7f]")


def http_address(text: str, *, hint: str = EXAMPLE) -> SplitResult:
    """The parts of an http(s) address; its `hostname` is there and its `port` can be read.

    Raises:
        Invalid: it is none, and why; or it carries a password.
    """
    if found := _NEVER.search(text):
        what = "a space" if found[0] == " " else "a control character"
        raise Invalid(f"`{text}` is no http address: it has {what} in it", hint=hint)
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise Invalid(f"`{text}` is no http address: {error}", hint=hint) from error
    if parts.username is not None or parts.password is not None:
        raise Invalid(
            f"the address of `{parts.hostname}` has a user name or a password in it, and addresses are shown",
            hint="leave it out; a key's place is api_key_env or api_key_file",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"`{text}` is no http address", hint=hint)
    return parts
