"""Compressed bodies: undone once, within a bound; everything behind them deals in plain bytes."""

import gzip
import zlib
from collections.abc import Callable
from io import BytesIO

import zstandard

from reef.errors import Invalid, TooLarge

Decoder = Callable[[bytes], bytes]
BROKEN = (zlib.error, zstandard.ZstdError, EOFError, gzip.BadGzipFile)
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_PIECE = 4096


def is_plain(encoding: str | None) -> bool:
    return encoding is None or encoding.strip().lower() in {"", "identity"}


def _unknown(encoding: str) -> Invalid:
    return Invalid(
        f"the content-encoding `{encoding}` is not understood", hint="send gzip, deflate, zstd or plain bytes"
    )


def decoder(encoding: str) -> Decoder:
    """An incremental decoder for `gzip`, `deflate` or `zstd`; what it raises is in `BROKEN`.

    Raises:
        Invalid: another encoding.
    """
    match encoding.strip().lower():
        case "gzip" | "x-gzip" | "deflate":
            return _Inflate()
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress
        case other:
            raise _unknown(other)


def decode(body: bytes, encoding: str | None, *, limit: int) -> bytes:
    """A whole body in plain bytes; never more than `limit` of them are unpacked. An empty one is empty.

    Raises:
        Invalid: it is not what `encoding` says, or that is not understood.
        TooLarge: it is longer than `limit` bytes.
    """
    if encoding is None or is_plain(encoding) or not body:
        return body
    try:
        plain = _unpack(body, encoding.strip().lower(), limit + 1)
    except BROKEN as error:
        raise Invalid(
            f"the body is not {encoding}: {error}",
            hint="check the content-encoding header",
        ) from error
    if len(plain) > limit:
        raise TooLarge(f"the body has more than {limit} bytes when unpacked")
    return plain


def beginning(body: bytes, encoding: str | None, *, most: int) -> bytes:
    """The first bytes of a body in plain, `most` of them at most; none where it cannot be unpacked so far."""
    if encoding is None or is_plain(encoding) or not body:
        return body[:most]
    try:
        return _unpack(body, encoding.strip().lower(), most)
    except (Invalid, *BROKEN):
        return b""


def _unpack(body: bytes, encoding: str, most: int) -> bytes:
    match encoding:
        case "gzip" | "x-gzip":
            with gzip.GzipFile(fileobj=BytesIO(body)) as reader:
                return reader.read(most)
        case "deflate":
            unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
            plain = unpacker.decompress(body, most)
            if not unpacker.eof and len(plain) < most:
                raise EOFError("it ends too early")
            return plain
        case "zstd":
            with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
                plain = reader.read(most)
            if len(plain) < most and not _is_whole(body):
                raise EOFError("it ends too early")
            return plain
        case _:
            raise _unknown(encoding)


def _is_whole(frames: bytes) -> bool:
    """Whether the last zstd frame is there to its end: the library does not mind if it is not."""
    library = zstandard.ZstdDecompressor()
    frame = None
    for start in range(0, len(frames), _PIECE):  # what is left of a piece is copied for each frame in it
        piece = frames[start : start + _PIECE]
        while piece:
            if frame is None or frame.eof:
                frame = library.decompressobj()
            frame.decompress(piece)
            piece = frame.unused_data if frame.eof else b""
    return frame is not None and frame.eof


class _Inflate:
    """Undoes gzip (one member after another) or deflate, piece by piece."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_OR_ZLIB)

    def __call__(self, data: bytes) -> bytes:
        plain = self._member.decompress(data)
        while self._member.eof and (rest := self._member.unused_data.lstrip(b"\0")):
            self._member = zlib.decompressobj(_GZIP_OR_ZLIB)
            plain += self._member.decompress(rest)
        return plain
