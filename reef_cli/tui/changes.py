"""What a candidate changes: against what is served where it waits, else against what it was made from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reef.errors import Conflict, NotFound

if TYPE_CHECKING:
    from reef.async_client import AsyncClient


@dataclass(frozen=True, slots=True)
class Changes:
    """`trouble` says why there is no diff, or why it cannot be had as it is; empty where all is well."""

    diff: str
    trouble: str = ""


async def changes(client: "AsyncClient", scenario: str, candidate: str, base: str, *, waits: bool) -> Changes:
    """Raises `ReefError`, but for a candidate that was pruned or no longer fits: that is a trouble."""
    trouble = ""
    if waits:
        try:
            return Changes(await client.diff(scenario, "HEAD", candidate))
        except Conflict as error:
            trouble = f"! {error.message}\n"
        except NotFound as error:
            return Changes("", f"! {error.message}\n")
    try:
        return Changes(await client.diff(scenario, base, candidate), trouble)
    except (Conflict, NotFound) as error:
        return Changes("", trouble or f"! {error.message}\n")
