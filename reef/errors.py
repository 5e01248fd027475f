"""Errors raised on purpose. They know neither HTTP nor terminals; each edge has one table for them.

`type` is the word of the wire (`docs/reference/protocol.md`); `hint` says what to do next.

ReefError
+-- Invalid            malformed input
|   +-- Refused        a check said no, and names its rule
|   +-- ConfigError    a setting is wrong; names file, line and key
+-- Unauthorized
+-- NotFound
+-- Conflict
+-- TooLarge
+-- Unsupported
+-- UpstreamFailed     a provider broke on its own account
+-- TimedOut
+-- Unavailable        not now; `retry_after_s` says when
    +-- OverBudget          a scenario has used what it may today
    +-- Loading             a model is being loaded; nothing was asked of it
    +-- DaemonUnreachable   raised by clients only
"""


class ReefError(Exception):
    """Base of every error raised on purpose."""

    type = "invalid"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Invalid(ReefError):
    """What was sent cannot be understood."""


class Refused(Invalid):
    """A check refused a change. `rule` is its name."""

    def __init__(self, rule: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.rule = rule


class ConfigError(Invalid):
    """A setting is wrong."""


class Unauthorized(ReefError):
    type = "unauthorized"


class NotFound(ReefError):
    type = "not_found"


class Conflict(ReefError):
    type = "conflict"


class TooLarge(ReefError):
    type = "too_large"


class Unsupported(ReefError):
    type = "unsupported"


class UpstreamFailed(ReefError):
    """The provider failed on its own account: refused, broken, 5xx.

    `status` and `body` are what it said, when it said anything; `sent` is false where the request
    never reached it.
    """

    type = "upstream"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        status: int | None = None,
        body: bytes = b"",
        sent: bool = True,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.body = body
        self.sent = sent


class TimedOut(ReefError):
    """No answer in time. `sent` is false where the request never reached anybody."""

    type = "timeout"

    def __init__(self, message: str, *, hint: str = "", sent: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.sent = sent


class Unavailable(ReefError):
    """Not now. `retry_after_s` (seconds) goes into `Retry-After`."""

    type = "unavailable"

    def __init__(self, message: str, *, hint: str = "", retry_after_s: int = 2) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class OverBudget(Unavailable):
    """A scenario has used what it may today. Said on provider routes only."""

    type = "over_budget"


class Loading(Unavailable):
    """The model is being loaded; nothing was asked of it."""


class DaemonUnreachable(Unavailable):
    """No daemon answers at the address the client has."""


BY_TYPE: dict[str, type[ReefError]] = {
    cls.type: cls
    for cls in (
        Invalid,
        Unauthorized,
        NotFound,
        Conflict,
        TooLarge,
        Unsupported,
        UpstreamFailed,
        TimedOut,
        Unavailable,
    )
}
