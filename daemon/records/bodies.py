"""Bodies as pieces: a body is a sequence of hashes, each piece is stored once.

One piece a body for now; readers join whatever sequence they find, so cutting bodies finer needs
no migration.
"""

from hashlib import blake2b

import zstandard
from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from daemon.store.schema import pieces
from reef.errors import Unavailable

HASH_BYTES = 16
PLAIN, ZSTD = 0, 1
COMPRESS_FROM_BYTES = 256
ZSTD_LEVEL = 3


def piece_hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=HASH_BYTES).digest()


def store_body(connection: Connection, body: bytes) -> bytes:
    """Store what is new of `body` and return its piece hashes, joined. An empty body has none."""
    if not body:
        return b""
    key = piece_hash(body)
    codec, data = PLAIN, body
    if len(body) >= COMPRESS_FROM_BYTES:
        packed = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(body)
        if len(packed) < len(body):
            codec, data = ZSTD, packed
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(
        insert(pieces).on_conflict_do_nothing(index_elements=["hash"]),
        {"hash": key, "codec": codec, "data": data},
    )
    return key


def load_body(connection: Connection, hashes: bytes | None) -> bytes:
    """The plain bytes behind a sequence of piece hashes."""
    if not hashes:
        return b""
    keys = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
    rows = connection.execute(select(pieces).where(pieces.c.hash.in_(set(keys))))
    found = {row.hash: (row.codec, row.data) for row in rows}
    if missing := [key for key in keys if key not in found]:
        raise Unavailable(
            f"a stored body lost {len(missing)} of its {len(keys)} pieces",
            hint="restore the home from a backup",
        )
    return b"".join(_plain(*found[key]) for key in keys)


def _plain(codec: int, data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(data) if codec == ZSTD else data
