"""What goes wrong between here and a server."""


class HttpError(Exception):
    """Base; its text says in a few words what happened."""


class NoHost(HttpError):
    """The name has no address."""


class Unreachable(HttpError):
    """Nobody takes the connection."""


class TlsFailed(HttpError):
    """The handshake failed, or the certificate is not trusted."""


class Untrusted(TlsFailed):
    """The server's certificate is not trusted. `remedy` says what mends that."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"its certificate is not trusted: {why}")
        self.remedy = remedy


class ProxyFailed(HttpError):
    """The proxy on the way cannot be reached, or refused."""


class ConnectTimedOut(HttpError):
    """There was no connection in time."""


class ReadTimedOut(HttpError):
    """The server took or said nothing for too long."""


class Closed(HttpError):
    """The client is closed; nothing was sent."""


class BrokeOff(HttpError):
    """The connection ended, or its bytes made no sense any more, before the answer was whole."""


class Unanswered(BrokeOff):
    """The connection ended before the head of an answer was there."""


class NotHttp(HttpError):
    """What came is no head of an answer."""


class BadAnswer(HttpError):
    """It is HTTP, but its head breaks the rules so that nobody can tell what is meant."""


def cause(error: Exception) -> str:
    """An error of the system in a few words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
