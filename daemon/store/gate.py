"""Whether a store that failed takes writes again: who may try, and who is told "not now" meanwhile."""

import asyncio
import logging
from math import ceil
from time import monotonic

from daemon.store import probe
from daemon.store.writer import Writer
from reef.errors import Unavailable

log = logging.getLogger("reef.store")


class Gate:
    """Stands before what costs something and needs the store. Belongs to one event loop."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._proved_at = 0.0
        """When the last proof was over, by `time.monotonic`; `_shown_at` of the last that went well."""
        self._shown_at = 0.0
        self._one_may = False
        """Whether nobody was let through yet by the last proof."""
        self._proof: asyncio.Task[None] | None = None

    @property
    def failed(self) -> Unavailable | None:
        """What the store failed with, until something is stored again (`works`)."""
        return self._writer.failed

    @property
    def trouble(self) -> Unavailable | None:
        """What keeps the store from being written, as far as is known."""
        writer = self._writer
        if writer.failed is not None:
            return None if self._is_shown() else writer.failed
        return None if writer.last_error is None else Unavailable(writer.last_error, hint="see `reef logs`")

    async def prove(self) -> None:
        """Show by a write that the store takes writes. Raises `Unavailable` where it does not.

        A caller who is cancelled leaves the proof to end by itself: what it wrote is taken back.
        """
        await asyncio.shield(self._begun())

    @property
    def _proving(self) -> bool:
        return self._proof is not None and not self._proof.done()

    def _begun(self) -> "asyncio.Task[None]":
        """The proof that goes on, or a new one."""
        if self._proof is None or self._proof.done():
            self._proof = asyncio.create_task(self._prove(), name="store")
            self._proof.add_done_callback(_seen)
        return self._proof

    async def _prove(self) -> None:
        try:
            await self._writer.ask(probe.put)
            await self._writer.ask(probe.take_back)
            self._shown_at, self._one_may = monotonic(), True
        finally:
            self._proved_at = monotonic()

    async def ready(self) -> None:
        """Return where the store takes writes, as far as is known. Of those who ask while it does not, one
        proves every few seconds whether it does again, and is let through; the others are refused until
        what that one has to store is stored (`works`): there may be room for a proof and for no more.

        Raises:
            Unavailable: what it last failed with.
        """
        failed = self._writer.failed
        if failed is None:
            return
        if self._is_shown() and self._one_may:  # by a look at the status
            self._one_may, self._proved_at = False, monotonic()
            return
        if self._proving or (wait := self._wait_s()) > 0:
            seconds = probe.EVERY_S if self._proving else wait
            raise Unavailable(failed.message, hint=failed.hint, retry_after_s=max(1, ceil(seconds)))
        await self.prove()
        self._one_may = False

    def works(self, failed: Unavailable) -> None:
        """What was asked for after `failed` is stored."""
        if self._writer.failed is failed:
            log.info("the store takes writes again")
            self._writer.failed = None

    def look_again(self) -> None:
        """Prove in the background, where it is time, whether a store that failed takes writes again."""
        if self._writer.failed is None or self._proving or self._is_shown() or self._wait_s() > 0:
            return
        self._begun()

    def _is_shown(self) -> bool:
        """Whether it was proved since the last failure."""
        return self._shown_at > self._writer.failed_at

    def _wait_s(self) -> float:
        """Until the next proof."""
        return max(self._writer.failed_at, self._proved_at) + probe.EVERY_S - monotonic()


def _seen(proof: "asyncio.Task[None]") -> None:
    """How a proof ended is known by its writer, whether somebody waits for it or not."""
    if not proof.cancelled():
        proof.exception()
