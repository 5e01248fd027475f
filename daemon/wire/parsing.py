"""Reading answers, whatever an upstream sent: one that stumbles its reader says nothing, and is kept."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from reef.runtime import Parsed

log = logging.getLogger(__name__)


def forgiving(parse: Callable[..., Parsed]) -> Callable[..., Parsed]:
    """A `parse` that never fails; what it cannot read has response None."""

    @wraps(parse)
    def parsed(reader: Any, body: bytes, *, stream: bool) -> Parsed:
        try:
            return parse(reader, body, stream=stream)
        except Exception:
            log.exception("an answer of %d bytes cannot be read", len(body))
            return Parsed(None)

    return parsed
