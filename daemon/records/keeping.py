"""Bodies on their way into the store: which of their pieces are new, and which are there already.

The requests of late are remembered with their pieces. One that shares bytes with one of them costs what is
new in it: the rest is neither read, nor hashed, masked, looked up or stored again. That the pieces it takes
over are in the store is never assumed: the record that holds them is looked for, which was committed with
them, and nothing deletes pieces.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from daemon.records.bodies import HASH_BYTES, Masking, store_pieces
from daemon.records.cutting import CUT_FROM_BYTES, Cut, Shared, common_head, cut
from daemon.store.quick import Quick
from daemon.store.schema import records

MOST_KEPT = 64
MOST_KEPT_BYTES = 8 * 2**20
_PLACE_BYTES = 64
"""About what is kept for each piece beside its bytes."""
_PROBE_BYTES = 64
_IS_THERE = Quick(
    select(records.c.id).where(
        records.c.id == bindparam("id"), records.c.request_pieces == bindparam("request_pieces")
    )
)


class Commit:
    """The pieces that are stored together."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._pieces: dict[bytes, bytes] = {}
        self._taken: list[tuple[Kept, Shared]] = []
        self.mark = object()
        """Names it."""

    def add(self, piece: bytes) -> tuple[bytes, int]:
        """Have a piece stored; returns its hash, and how many credentials were masked in it."""
        key, data, masked = self._masking.masked(piece)
        self._pieces[key] = data
        return key, masked

    def take(self, kept: "Kept", shared: Shared) -> None:
        """Have those pieces of an earlier body stored, if they are not."""
        if kept.mark is not self.mark:
            self._taken.append((kept, shared))

    def store(self, connection: Connection) -> None:
        """Store those of the pieces that are not there yet."""
        for kept, shared in self._taken:
            proof = {"id": kept.receipt, "request_pieces": kept.keys}
            if _IS_THERE.scalar(connection, proof) is None:
                count = len(kept.cut.ends)
                for piece in (
                    *kept.cut.pieces(0, shared.head),
                    *kept.cut.pieces(count - shared.tail, count),
                ):
                    self.add(piece)
        store_pieces(connection, self._pieces)


@dataclass(slots=True, eq=False)
class Kept:
    """A body as it is stored.

    Attributes:
        keys: the hashes of its pieces, one after another.
        masked: how many credentials were masked in its pieces, by their number, where there were any.
        receipt: the record whose request it is.
        mark: of the commit it was stored with.
    """

    cut: Cut
    keys: bytes
    masked: dict[int, int]
    receipt: str
    mark: object

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return len(self.cut.body) + _PLACE_BYTES * len(self.cut.ends)

    def keys_of(self, key: str) -> bytes | None:
        """The hashes of the list under `key`; None where it was not cut."""
        places = self.cut.places(key)
        return None if places is None else self.keys[places[0] * HASH_BYTES : places[1] * HASH_BYTES]


class Bodies:
    """Takes bodies apart, and remembers requests, but none with a credential in it. `scrub`: what looks like
    one is masked."""

    def __init__(self, scrub: bool) -> None:
        self._masking = Masking(scrub)
        self._recent: list[Kept] = []
        self.size = 0
        """Bytes of memory, about, of the requests that are remembered."""

    def commit(self) -> Commit:
        """A commit with nothing in it."""
        return Commit(self._masking)

    def request(self, body: bytes, receipt: str, commit: Commit) -> Kept:
        """Have the request of a record stored."""
        like = self._like(body)
        kept, shared = _keep(body, like, receipt, commit)
        if kept.cut.lists and not kept.masked and kept.size <= MOST_KEPT_BYTES:
            self._remember(kept, like, shared)
        return kept

    def forwarded(self, body: bytes, request: Kept, commit: Commit) -> Kept:
        """Have stored what became of a request on its way."""
        return _keep(body, request, request.receipt, commit)[0]

    def _like(self, body: bytes) -> Kept | None:
        """The remembered request whose beginning this one shares; of equals the latest."""
        found, most = None, 0
        if len(body) < CUT_FROM_BYTES:
            return None
        for kept in reversed(self._recent):
            if found and not body.startswith(kept.cut.body[most : most + _PROBE_BYTES], most):
                continue
            head = common_head(body, kept.cut)
            reach = kept.cut.ends[head - 1] if head else 0
            if found is None or reach > most:
                found, most = kept, reach
        return found

    def _remember(self, kept: Kept, like: Kept | None, shared: Shared) -> None:
        """Remember a request, in place of the one it goes on from, which has most of its pieces here too."""
        recent = self._recent
        if like is not None and 2 * (shared.head + shared.tail) > len(like.cut.ends):
            recent.remove(like)
            self.size -= like.size
        recent.append(kept)
        self.size += kept.size
        while self.size > MOST_KEPT_BYTES or len(recent) > MOST_KEPT:
            self.size -= recent.pop(0).size


def _keep(body: bytes, like: Kept | None, receipt: str, commit: Commit) -> tuple[Kept, Shared]:
    """Cut a body, take what it can from `like`, and have the rest stored."""
    made, shared = cut(body, like.cut if like else None)
    first, last = shared.head, len(made.ends) - shared.tail
    keys: list[bytes] = []
    masked: dict[int, int] = {}
    for at, piece in enumerate(made.pieces(first, last), first):
        key, hits = commit.add(piece)
        keys.append(key)
        if hits:
            masked[at] = hits
    if like is not None and (shared.head or shared.tail):
        commit.take(like, shared)
        before = len(like.cut.ends) - shared.tail
        for at, hits in like.masked.items():
            if at < first:
                masked[at] = hits
            elif at >= before:
                masked[at - before + last] = hits
        keys = [like.keys[: first * HASH_BYTES], *keys, like.keys[before * HASH_BYTES :]]
    return Kept(made, b"".join(keys), masked, receipt, commit.mark), shared
