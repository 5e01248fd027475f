"""The one spelling of text in a tree, and the looser one in which two texts are compared."""

import json
import re
import unicodedata
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_NOT_WORDS = re.compile(r"[\W_]+")


def plain(text: str) -> str:
    """`text` in Unicode NFC with LF line ends."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def document(text: str) -> str:
    """As `plain`, without blank lines around it: the text of a file, which then ends in one newline."""
    return plain(text).strip("\n").rstrip()


def has_control_characters(text: str) -> bool:
    return _CONTROL.search(text) is not None


def plain_json(value: Any) -> Any:
    """A JSON value with every text in it, keys included, made `plain`."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return value


def canonical_json(value: Any) -> bytes:
    """Sorted keys, two spaces, LF, UTF-8."""
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def comparable(text: str) -> str:
    """Words in lower case with single spaces between them; two texts that say the same compare equal."""
    return _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
