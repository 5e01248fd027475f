"""US dollars as text."""

import math

_ROUND_FROM = 0.1
_DIGITS = 2


def dollars(usd: float) -> str:
    """`$0.25`; a smaller sum keeps two digits that say something: `$0.0042`."""
    digits = _DIGITS
    if 0 < abs(usd) < _ROUND_FROM:
        digits = _DIGITS - 1 - math.floor(math.log10(abs(usd)))
    return f"${usd:.{digits}f}"
