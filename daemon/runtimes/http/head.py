"""The head of a request, in bytes."""

import re
from collections.abc import Iterable

from reef.errors import Invalid
from reef.runtime import Header

_NEVER_IN_TARGET = re.compile(r"[\x00-\x20\x7f]")


def head_of(method: str, target: str, fixed: Iterable[str], headers: Iterable[Header], length: int) -> bytes:
    """The request line, `fixed` lines as they are, and the headers; ready to be sent.

    Raises:
        Invalid: a line break, a NUL, or what latin-1 lacks, is where it would make another request of it.
    """
    lines = [f"{method} {target} HTTP/1.1", *fixed]
    lines += [f"{name}: {value}" for name, value in headers]
    if length or method not in ("GET", "HEAD", "OPTIONS", "TRACE", "DELETE"):
        lines.append(f"content-length: {length}")
    text = "\r\n".join(lines)
    breaks = len(lines) - 1
    if text.count("\r") != breaks or text.count("\n") != breaks or "\0" in text:
        raise Invalid("a header of the request has a line break or a NUL in it", hint="send it without")
    if _NEVER_IN_TARGET.search(target) or " " in method:
        raise Invalid("the path of the request has a space or a control character in it", hint="encode it")
    try:
        return (text + "\r\n\r\n").encode("latin-1")
    except UnicodeEncodeError as error:
        wrong = text[error.start : error.end]
        raise Invalid(
            f"a header or the path of the request has {wrong!a} in it", hint="only latin-1 passes there"
        ) from error
