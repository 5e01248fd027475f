"""Whether a store that failed takes writes again: shown by a real write, at a pace that costs nothing."""

import os

from sqlalchemy import Connection, delete, insert

from daemon.store.schema import pieces

EVERY_S = 3.0
"""How long nobody asks again after a failure."""
SIZE = 64 * 1024
"""Bytes: as much as a record of a larger request takes, so that a gap on a full disk passes for no room."""
_NAME = b"probe"
"""No hash is as short."""


def put(connection: Connection) -> None:
    """Write what may be taken back by `take_back` in a commit of its own: written and deleted in one, it
    would need no room."""
    take_back(connection)
    connection.execute(insert(pieces), {"hash": _NAME, "codec": 0, "data": os.urandom(SIZE)})


def take_back(connection: Connection) -> None:
    connection.execute(delete(pieces).where(pieces.c.hash == _NAME))
