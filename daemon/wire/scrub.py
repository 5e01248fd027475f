"""Credential-shaped literals in bytes: finding them, and masking them before anything is stored.

One list of shapes serves the record scrubber and the checks on a harness tree. A literal is replaced by
plain ASCII without quotes or backslashes, so JSON stays JSON.
"""

import re
from typing import NamedTuple

MASK = b"[masked by reef]"


class Shape(NamedTuple):
    """One kind of literal. `words` (lower case) are looked for first: that is far faster than matching. Where
    they are many, each has one of `parts` in it.

    Where the expression has the group `secret`, the rest of the match stays readable.
    """

    name: str
    words: tuple[bytes, ...]
    expression: re.Pattern[bytes]
    parts: tuple[bytes, ...] = ()


_EDGE = rb"(?<![A-Za-z0-9_-])"
_BEGIN, _END = (rb"-----%s [A-Z ]{0,24}PRIVATE KEY-----" % word for word in (b"BEGIN", b"END"))
_NAMES = (b"api key", b"access key", b"secret key", b"access token", b"auth token", b"client secret")
_ASSIGNED = tuple(name.replace(b" ", gap) for name in _NAMES for gap in (b"", b"_", b"-"))


def _shape(name: str, words: str, expression: bytes, *parts: bytes) -> Shape:
    return Shape(name, tuple(words.encode().split()), re.compile(expression), parts)


_SHAPES = (
    _shape(
        "a private key",
        "key-----",
        _BEGIN
        + rb"(?:[A-Za-z0-9+/=\s:,-]|\\[nrt])*?"
        + _END
        + rb"|"
        + _BEGIN
        + rb"(?:[A-Za-z0-9+/=]{16,}|\s|\\[nrt])*",
    ),
    _shape("an API key (sk-...)", "sk-", _EDGE + rb"sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"),
    _shape("a Stripe key", "k_live_ k_test_", _EDGE + rb"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _shape("a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", _EDGE + rb"gh[pousr]_[A-Za-z0-9]{30,}"),
    _shape("a GitHub token", "github_pat_", _EDGE + rb"github_pat_[A-Za-z0-9_]{30,}"),
    _shape("a GitLab token", "glpat-", _EDGE + rb"glpat-[A-Za-z0-9_-]{16,}"),
    _shape(
        "a Slack token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-",
        _EDGE + rb"xox[abeoprs]-[A-Za-z0-9-]{16,}",
        b"xox",
    ),
    _shape("a Hugging Face token", "hf_", _EDGE + rb"hf_[A-Za-z0-9]{30,}"),
    _shape("an npm token", "npm_", _EDGE + rb"npm_[A-Za-z0-9]{30,}"),
    _shape("an AWS access key", "akia asia", _EDGE + rb"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("a Google API key", "aiza", _EDGE + rb"AIza[A-Za-z0-9_-]{35}"),
    _shape("a JSON web token", "eyj", _EDGE + rb"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    _shape("a bearer token", "bearer", rb"(?i:bearer)[ \t]+(?P<secret>[A-Za-z0-9._~+/-]{20,}=*)"),
    Shape(
        "a credential in an assignment",
        (*_ASSIGNED, b"password", b"passwd"),
        re.compile(
            rb"(?i:(?:api|access|secret)[_-]?key|(?:access|auth)[_-]?token|client[_-]?secret|passw(?:or)?d)"
            rb"""\\?["']?\s*[:=]\s*\\?["']?"""
            rb"(?P<secret>(?=[A-Za-z_./+-]*[0-9])[A-Za-z0-9_./+-]{16,}=*)"
        ),
        (b"key", b"token", b"secret", b"passw"),
    ),
)


def mask(data: bytes) -> tuple[bytes, int]:
    """`data` with each credential-shaped literal replaced, and how many there were (0: the very bytes)."""
    total = 0
    for shape in _candidates(data):
        data, count = shape.expression.subn(_replace, data)
        total += count
    return data, total


def find_credential(text: str) -> str | None:
    """What kind of credential `text` seems to hold, in words ("a GitHub token"), or None."""
    data = text.encode("utf-8", "replace")
    return next((shape.name for shape in _candidates(data) if shape.expression.search(data)), None)


def _candidates(data: bytes) -> list[Shape]:
    lowered = data.lower()
    found = []
    for shape in _SHAPES:
        if shape.parts and not any(part in lowered for part in shape.parts):
            continue
        for word in shape.words:
            if word in lowered:
                found.append(shape)
                break
    return found


def _replace(match: re.Match[bytes]) -> bytes:
    if "secret" not in match.re.groupindex:
        return MASK
    start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
    return match[0][:start] + MASK + match[0][end:]
