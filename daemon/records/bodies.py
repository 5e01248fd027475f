"""Bodies as pieces: a body is a sequence of hashes, each piece is stored once.

Readers join whatever sequence they find, so where bodies are cut (see `daemon.records.cutting`) is no matter
of the format.
"""

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from threading import local

import zstandard
from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from daemon.scrub import mask
from daemon.store.quick import Quick
from daemon.store.schema import pieces
from reef.errors import Unavailable

HASH_BYTES = 16
PLAIN, ZSTD = 0, 1
COMPRESS_FROM_BYTES = 256
ZSTD_LEVEL = 3
CLEAN_KEPT = 8192
LOOK_UP_FROM_BYTES = 32_768
"""So many bytes are cheaper to look up, and perhaps leave out, than to compress and store again."""
_LOOKED_UP = 500
_KNOWN = Quick(select(pieces.c.hash).where(pieces.c.hash.in_(bindparam("hashes", expanding=True))))
_INSERT = {
    "sqlite": Quick(sqlite.insert(pieces).on_conflict_do_nothing(index_elements=["hash"])),
    "postgresql": Quick(postgresql.insert(pieces).on_conflict_do_nothing(index_elements=["hash"])),
}
_packing = local()


def piece_hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=HASH_BYTES).digest()


class Masking:
    """Masks pieces before they are stored, and remembers those in which there was nothing to mask."""

    def __init__(self, scrub: bool) -> None:
        self._scrub = scrub
        self._clean: OrderedDict[bytes, None] = OrderedDict()

    def masked(self, piece: bytes) -> tuple[bytes, bytes, int]:
        """(hash, bytes) of the piece as it may be stored, and how many credentials were in it."""
        key = piece_hash(piece)
        if not self._scrub:
            return key, piece, 0
        if key in self._clean:
            self._clean.move_to_end(key)
            return key, piece, 0
        safe, hits = mask(piece)
        if hits:
            return piece_hash(safe), safe, hits
        self._clean[key] = None
        if len(self._clean) > CLEAN_KEPT:
            self._clean.popitem(last=False)
        return key, piece, 0


def store_pieces(connection: Connection, wanted: Mapping[bytes, bytes]) -> None:
    """Store those of the pieces (by hash) that are not there yet."""
    keys = list(wanted)
    known: set[bytes] = set()
    if sum(map(len, wanted.values())) >= LOOK_UP_FROM_BYTES:
        for at in range(0, len(keys), _LOOKED_UP):
            known.update(_KNOWN.column(connection, "hashes", keys[at : at + _LOOKED_UP]))
    rows = []
    for key in keys:
        if key not in known:
            codec, data = _packed(wanted[key])
            rows.append({"hash": key, "codec": codec, "data": data})
    if rows:
        _INSERT[connection.dialect.name].many(connection, rows)


def load_body(connection: Connection, hashes: bytes | None) -> bytes:
    """The plain bytes behind a sequence of piece hashes."""
    if not hashes:
        return b""
    keys = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
    distinct = list(dict.fromkeys(keys))
    found: dict[bytes, tuple[int, bytes]] = {}
    for at in range(0, len(distinct), _LOOKED_UP):
        rows = connection.execute(select(pieces).where(pieces.c.hash.in_(distinct[at : at + _LOOKED_UP])))
        found |= {row.hash: (row.codec, row.data) for row in rows}
    if missing := [key for key in keys if key not in found]:
        raise Unavailable(
            f"a stored body lost {len(missing)} of its {len(keys)} pieces",
            hint="restore the home from a backup",
        )
    plain = {key: _plain(*packed) for key, packed in found.items()}
    return b"".join(plain[key] for key in keys)


def _packed(data: bytes) -> tuple[int, bytes]:
    if len(data) < COMPRESS_FROM_BYTES:
        return PLAIN, data
    if (compressor := getattr(_packing, "compressor", None)) is None:
        compressor = _packing.compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    packed: bytes = compressor.compress(data)
    return (ZSTD, packed) if len(packed) < len(data) else (PLAIN, data)


def _plain(codec: int, data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(data) if codec == ZSTD else data
