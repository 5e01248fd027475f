"""Whether a GGUF file is all there, as far as its head tells.

The head names every tensor with its shape, its type and where its data begins; the file must reach to the end
of the last. Nothing of the data is read.
"""

import os
import struct
from math import prod
from pathlib import Path
from typing import BinaryIO

from reef.errors import Invalid

VERSIONS = (2, 3)
ALIGNMENT = 32
MOST_DIMENSIONS = 4
_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value of the head, by its type."""
_AGAIN = "download it again"
_UINT32, _STRING, _ARRAY = 4, 8, 9
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18),
}  # fmt: skip
"""Elements and bytes of a block, by the type of a tensor. One of another type counts as empty."""


class _Unreadable(Exception):
    """The file ends within its head, or that makes no sense."""


def begins_as_gguf(head: bytes) -> bool:
    """Whether these are the first eight bytes of a GGUF file."""
    return len(head) >= 8 and head[:4] == b"GGUF" and struct.unpack("<I", head[4:8])[0] in VERSIONS


def is_gguf(path: Path) -> bool:
    """Whether a file begins as a GGUF file does.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return begins_as_gguf(file.read(8))


def check_whole(path: Path) -> None:
    """Refuse a GGUF file that is cut off.

    Raises:
        Invalid: it is none, its head makes no sense, or it ends before its tensors do.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not begins_as_gguf(file.read(8)):
            raise Invalid(f"{path} is not a GGUF file", hint="give the path of a .gguf model")
        try:
            needed = _Head(file, size).end_of_data()
        except (_Unreadable, RecursionError):
            raise Invalid(
                f"{path} is not a whole GGUF file: its head is cut off or makes no sense", hint=_AGAIN
            ) from None
    if needed > size:
        raise Invalid(f"{path} is not whole: it ends after {size:,} bytes of {needed:,}", hint=_AGAIN)


class _Head:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def end_of_data(self) -> int:
        """Where the data of the last tensor ends, in bytes from the beginning of the file."""
        tensors, pairs = self._number("Q"), self._number("Q")
        alignment = ALIGNMENT
        for _ in range(pairs):
            key, kind = self._text(), self._number("I")
            if key == b"general.alignment" and kind == _UINT32:
                alignment = max(self._number("I"), 1)
            else:
                self._pass_over(kind)
        ends = [self._tensor() for _ in range(tensors)]
        begin = -(-self._file.tell() // alignment) * alignment
        return begin + max(ends) if ends else self._file.tell()

    def _tensor(self) -> int:
        """Where a tensor's data ends, from where all data begins."""
        self._text()
        dimensions = self._number("I")
        if dimensions > MOST_DIMENSIONS:
            raise _Unreadable
        elements = prod([self._number("Q") for _ in range(dimensions)])
        per_block, bytes_per_block = BLOCKS.get(self._number("I"), (1, 0))
        return self._number("Q") + elements // per_block * bytes_per_block

    def _pass_over(self, kind: int) -> None:
        if kind == _STRING:
            self._text()
        elif kind == _ARRAY:
            inner, count = self._number("I"), self._number("Q")
            if inner in _SCALARS:
                self._skip(count * _SCALARS[inner])
            else:
                for _ in range(count):
                    self._pass_over(inner)
        elif kind in _SCALARS:
            self._skip(_SCALARS[kind])
        else:
            raise _Unreadable

    def _text(self) -> bytes:
        length = self._number("Q")
        if length > 65536:
            self._skip(length)
            return b""
        return self._read(length)

    def _number(self, form: str) -> int:
        found: int = struct.unpack(f"<{form}", self._read(struct.calcsize(form)))[0]
        return found

    def _read(self, length: int) -> bytes:
        data = self._file.read(length)
        if len(data) < length:
            raise _Unreadable
        return data

    def _skip(self, length: int) -> None:
        if self._file.tell() + length > self._size:
            raise _Unreadable
        self._file.seek(length, os.SEEK_CUR)
