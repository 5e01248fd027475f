"""Puts an exchange into the store, and decides what happens to an answer that could not be stored."""

import asyncio
import logging
from collections.abc import Callable
from typing import Literal

from daemon.records.draft import Draft
from daemon.scrub import mask
from daemon.serving.ports import RecordAppender
from reef.errors import Unavailable

log = logging.getLogger(__name__)

LOGGED_CHARS = 300


class Keeper:
    """`on_failure`: `refuse` lets no answer out that is not stored, `serve` lets it out without a receipt.
    `on_record` is called with each draft that was stored, as soon as the loop gets to it: the answer does not
    wait for it. `on_lost` is called with each that was not."""

    def __init__(
        self,
        records: RecordAppender,
        on_failure: Literal["refuse", "serve"],
        on_record: Callable[[Draft], None] | None,
        on_lost: Callable[[Draft], None] = lambda _: None,
    ) -> None:
        self._records = records
        self._on_failure = on_failure
        self._on_record = on_record
        self._on_lost = on_lost

    @property
    def failing(self) -> bool:
        """Whether the store is known to take no records."""
        return self._records.failed is not None

    @property
    def serves_anyway(self) -> bool:
        return self._on_failure == "serve"

    async def ready(self) -> None:
        """Before anybody is asked while the store is `failing`: see whether it still is.

        Raises:
            Unavailable: it is, and an answer must not go out.
        """
        try:
            await self._records.ready()
        except Unavailable:
            if not self.serves_anyway:
                raise

    async def keep(self, draft: Draft) -> bool:
        """Store a draft. False: it is not stored, but the answer may go out.

        Raises:
            Unavailable: it is not stored and the answer must not go out.
        """
        try:
            await self._append(draft)
        except Exception as error:  # whatever it is, the answer has no record
            log.error("record %s of scenario %s was not stored: %s", draft.id, draft.scenario, error)
            await self._lose(draft)
            if self.serves_anyway:
                return False
            if isinstance(error, Unavailable):
                raise
            raise Unavailable(f"the record could not be stored: {error}", hint="see `reef logs`") from error
        if draft.status == "failed":
            log.warning("record %s of scenario %s: %s", draft.id, draft.scenario, _told(draft.error_message))
        if self._on_record is not None:
            asyncio.get_running_loop().call_soon(self._on_record, draft)
        return True

    def open(self, draft: Draft) -> None:
        """The receipt of a stream goes out now; its record follows."""
        self._records.opened(draft.id, draft.scenario)

    async def _lose(self, draft: Draft) -> None:
        """Have what was used counted all the same: somebody pays for it."""
        try:
            await self._records.measure(draft)
            self._on_lost(draft)
        except Exception:  # the answer does not depend on it
            log.exception("what record %s used is not counted", draft.id)

    async def _append(self, draft: Draft) -> None:
        try:
            await self._records.append(draft)
        finally:
            self._records.closed(draft.id)

    async def keep_anyway(self, draft: Draft) -> None:
        """Store a draft that nobody waits for; a failure is logged."""
        try:
            await self.keep(draft)
        except Unavailable:
            return


def _told(message: str | None) -> str:
    """What went wrong as one line of the log: an upstream may have put a client's key into it."""
    said = mask((message or "it failed").encode())[0].decode()
    return " ".join(said.split())[:LOGGED_CHARS]
