"""Compressed bodies: undone once, within a bound; everything behind them deals in plain bytes."""

import zlib
from collections.abc import Callable

import zstandard

from reef.errors import Invalid, TooLarge

Decoder = Callable[[bytes], bytes]
BROKEN = (zlib.error, zstandard.ZstdError, EOFError)
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


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
            return zlib.decompressobj(_GZIP_OR_ZLIB).decompress
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress
        case other:
            raise _unknown(other)


def decode(body: bytes, encoding: str | None, *, limit: int) -> bytes:
    """A whole body in plain bytes; never more than `limit` of them are unpacked.

    Raises:
        Invalid: it is not what `encoding` says, or that is not understood.
        TooLarge: it is longer than `limit` bytes.
    """
    if encoding is None or is_plain(encoding):
        return body
    try:
        plain = _unpack(body, encoding.strip().lower(), limit + 1)
    except BROKEN as error:
        raise Invalid(f"the body is not {encoding}: {error}") from error
    if len(plain) > limit:
        raise TooLarge(f"the body has more than {limit} bytes when unpacked")
    return plain


def _unpack(body: bytes, encoding: str, most: int) -> bytes:
    match encoding:
        case "gzip" | "x-gzip" | "deflate":
            unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
            plain = unpacker.decompress(body, most)
            if not unpacker.eof and len(plain) < most:
                raise EOFError("it ends too early")
            return plain
        case "zstd":
            with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
                return reader.read(most)
        case _:
            raise _unknown(encoding)
