"""Credential-shaped literals: finding them, and masking them before anything is stored or shown.

One list of shapes serves the record scrubber, the checks on a harness tree and those on the configuration. A
literal is replaced by plain ASCII without quotes or backslashes, so JSON stays JSON.
"""

import re
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

MASK = b"[masked by reef]"
NAMES_KEPT = 1024


class Shape(NamedTuple):
    """One kind of literal.

    One of `hints` is found where there may be one, far faster than `expression`; several shapes may share it,
    and then one of `words` has to be there as well. Where it is `folded`, hints are looked for in lower case.
    Where the expression has the group `secret`, the rest of the match stays readable.
    """

    name: str
    hints: tuple[re.Pattern[bytes], ...]
    words: tuple[bytes, ...]
    expression: re.Pattern[bytes]
    folded: bool = False


_EDGE = rb"(?<![A-Za-z0-9_-])"
_BEGIN, _END = (rb"-----%s [A-Z ]{0,24}PRIVATE KEY-----" % word for word in (b"BEGIN", b"END"))


def _ending(last: bytes, *words: bytes) -> re.Pattern[bytes]:
    """Finds words that end alike: it is fast since the end is looked for first."""
    return re.compile(last + b"(?:" + b"|".join(b"(?<=%s)" % (word + last) for word in words) + b")")


_DASH = _ending(b"-", b"sk", b"glpat", b"xox[abeoprs]")
_UNDERSCORE = _ending(b"_", b"k_live", b"k_test", b"gh[pousr]", b"github_pat", b"hf", b"npm")
_CAPITAL_A = re.compile(rb"A(?:KIA|SIA|Iza)")
_ASSIGNED = (
    _ending(b"key", b"api", b"api[_-]", b"access", b"access[_-]", b"secret", b"secret[_-]"),
    _ending(b"token", b"access", b"access[_-]", b"auth", b"auth[_-]"),
    _ending(b"secret", b"client", b"client[_-]"),
    re.compile(rb"passw"),
)


def _shape(name: str, hint: re.Pattern[bytes], words: str, expression: bytes) -> Shape:
    return Shape(name, (hint,), tuple(words.encode().split()), re.compile(expression))


SHAPES = (
    _shape(
        "a private key",
        re.compile(rb"PRIVATE KEY-----"),
        "",
        _BEGIN
        + rb"(?:[A-Za-z0-9+/=\s:,-]|\\[nrt])*?"
        + _END
        + rb"|"
        + _BEGIN
        + rb"(?:[A-Za-z0-9+/=]{16,}|\s|\\[nrt])*",
    ),
    _shape("an API key (sk-...)", _DASH, "sk-", _EDGE + rb"sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"),
    _shape("a Stripe key", _UNDERSCORE, "k_live_ k_test_", _EDGE + rb"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _shape("a GitHub token", _UNDERSCORE, "ghp_ gho_ ghu_ ghs_ ghr_", _EDGE + rb"gh[pousr]_[A-Za-z0-9]{30,}"),
    _shape("a GitHub token", _UNDERSCORE, "github_pat_", _EDGE + rb"github_pat_[A-Za-z0-9_]{30,}"),
    _shape("a GitLab token", _DASH, "glpat-", _EDGE + rb"glpat-[A-Za-z0-9_-]{16,}"),
    _shape("a Slack token", _DASH, "xox", _EDGE + rb"xox[abeoprs]-[A-Za-z0-9-]{16,}"),
    _shape("a Hugging Face token", _UNDERSCORE, "hf_", _EDGE + rb"hf_[A-Za-z0-9]{30,}"),
    _shape("an npm token", _UNDERSCORE, "npm_", _EDGE + rb"npm_[A-Za-z0-9]{30,}"),
    _shape(
        "an AWS access key",
        _CAPITAL_A,
        "AKIA ASIA",
        _EDGE + rb"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    _shape("a Google API key", _CAPITAL_A, "AIza", _EDGE + rb"AIza[A-Za-z0-9_-]{35}"),
    _shape(
        "a JSON web token",
        re.compile(rb"J(?<=eyJ)"),
        "eyJ",
        _EDGE + rb"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    Shape(
        "a bearer token",
        (re.compile(rb"bearer"),),
        (),
        re.compile(rb"(?i:bearer)[ \t]+(?P<secret>[A-Za-z0-9._~+/-]{20,}=*)"),
        folded=True,
    ),
    Shape(
        "a credential in an assignment",
        _ASSIGNED,
        (),
        re.compile(
            rb"(?i:(?:api|access|secret)[_-]?key|(?:access|auth)[_-]?token|client[_-]?secret|passw(?:or)?d)"
            rb"""\\?["']?\s*[:=]\s*\\?["']?"""
            rb"(?P<secret>(?=[A-Za-z_./+-]*[0-9])[A-Za-z0-9_./+-]{16,}=*)"
        ),
        folded=True,
    ),
)


_PARTS = re.compile(r"[^A-Za-z0-9]+")
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[a-z])[A-Za-z0-9]+")
"""A part of a name in which some characters are digits and some are no capitals."""

_HINTS = tuple(dict.fromkeys((hint, shape.folded) for shape in SHAPES for hint in shape.hints))


def mask(data: bytes) -> tuple[bytes, int]:
    """`data` with each credential-shaped literal replaced, and how many there were (0: the very bytes)."""
    total = 0
    for shape in _candidates(data):
        data, count = shape.expression.subn(_replace, data)
        total += count
    return data, total


@lru_cache(NAMES_KEPT)
def masked_name(name: str) -> str:
    """`name` as it may be stored and looked up by: beside a mask it has what tells it from others."""
    said = name.encode("utf-8", "replace")
    safe, hits = mask(said)
    return f"{safe.decode()} {blake2b(said, digest_size=4).hexdigest()}" if hits else name


def masked(text: str) -> str:
    """`text` with each credential-shaped literal replaced, for what is shown or logged."""
    return mask(text.encode("utf-8", "replace"))[0].decode()


def find_credential(text: str) -> str | None:
    """What kind of credential `text` seems to hold, in words ("a GitHub token"), or None."""
    data = text.encode("utf-8", "replace")
    return next((shape.name for shape in _candidates(data) if shape.expression.search(data)), None)


def is_key(text: str, *, least: int = 16) -> bool:
    """Whether `text`, which should be a name, is a key instead: of a known shape, or with letters and digits
    mixed as in no word, `least` characters of them in a row."""
    return find_credential(text) is not None or any(
        len(part) >= least and _RANDOM.fullmatch(part) for part in _PARTS.split(text)
    )


def _candidates(data: bytes) -> list[Shape]:
    """The shapes of which there may be one in `data`."""
    lowered = data.lower()
    hinted = [hint for hint, folded in _HINTS if hint.search(lowered if folded else data)]
    if not hinted:
        return []
    return [
        shape
        for shape in SHAPES
        if any(hint in hinted for hint in shape.hints)
        and (not shape.words or any(word in data for word in shape.words))
    ]


def _replace(match: re.Match[bytes]) -> bytes:
    if "secret" not in match.re.groupindex:
        return MASK
    start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
    return match[0][:start] + MASK + match[0][end:]
