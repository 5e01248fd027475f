"""Asking again when an upstream fails before the first byte of its answer."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from reef.errors import ReefError, TimedOut, UpstreamFailed
from reef.runtime import ProviderRequest, ProviderResponse

REPEATED = frozenset({429, 500, 502, 503, 504, 529})
"""Statuses that another try, or another upstream, may do better than."""
LONGEST_S = 30.0
"""An upstream that wants to be left alone for longer is left alone: its answer goes to the client."""
_FIRST_S, _MOST_S = 0.5, 8.0

Send = Callable[[ProviderRequest], Awaitable[ProviderResponse]]


async def send_again(send: Send, request: ProviderRequest, name: str, retries: int) -> ProviderResponse:
    """Send a request, up to `retries` times more while it fails; `request.attempts` tells how each try ended.

    It waits as long as the upstream says (`retry-after`), else half a second, a second, two, ...
    Raises what the last try does.
    """
    for tried in range(retries):
        try:
            response = await send(request)
        except (UpstreamFailed, TimedOut) as error:
            if not _may_repeat(error):
                raise
            wait: float | None = _back_off(tried)
            said, may_have_cost = error.message, error.sent
        else:
            wait = _wait(response, tried)
            if wait is None:
                return response
            said, may_have_cost = f"upstream `{name}` answered {response.status}", False
            await response.close()
        request.attempts.append(said)
        if request.on_again is not None:
            await request.on_again(may_have_cost)
        await asyncio.sleep(wait or 0.0)
    return await send(request)


def _may_repeat(error: ReefError) -> bool:
    """Whether another try is worth it. What broke off may have been answered, and paid for, all the same:
    clients want an answer. Where nobody answered in time, the upstream may still be at work."""
    return not isinstance(error, TimedOut) or not error.sent


def _wait(response: ProviderResponse, tried: int) -> float | None:
    """Seconds until the next try; None where the answer stands."""
    if response.status not in REPEATED or response.header("x-should-retry") == "false":
        return None
    told = _told(response)
    if told is None:
        return _back_off(tried)
    return max(told, 0.0) if told <= LONGEST_S else None


def _told(response: ProviderResponse) -> float | None:
    """What the upstream says about coming back, in seconds."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = response.header(name)
        if value is None:
            continue
        try:
            return float(value) / unit
        except ValueError:
            pass
        try:
            return (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            continue
    return None


def _back_off(tried: int) -> float:
    """Longer each time, and not the same for all who wait."""
    wait: float = min(_FIRST_S * 2**tried, _MOST_S)
    return wait * random.uniform(0.75, 1.25)  # noqa: S311 - spreads load
