"""What went wrong on the way to an upstream, in words that say how to mend it."""

from daemon.runtimes.http import errors
from reef.errors import ReefError, TimedOut, UpstreamFailed


def explain(error: errors.HttpError, name: str, address: str) -> ReefError:
    """The `UpstreamFailed` or `TimedOut` for an error of the client."""
    where = f"upstream `{name}` at {address}"
    match error:
        case errors.ConnectTimedOut():
            return TimedOut(
                f"{where} could not be reached in time",
                hint="check the address, or raise connect_timeout_s",
                sent=False,
            )
        case errors.ReadTimedOut():
            return TimedOut(f"{where} did not answer in time", hint="raise read_timeout_s of the upstream")
        case errors.Closed():
            return UpstreamFailed(
                f"{where} was not asked: the daemon is done with it", hint="try again", sent=False
            )
        case errors.NoHost():
            return UpstreamFailed(f"{where}: no such host", hint="check base_url and the network", sent=False)
        case errors.Untrusted():
            return UpstreamFailed(f"{where}: {error}", hint=error.remedy, sent=False)
        case errors.TlsFailed():
            return UpstreamFailed(
                f"{where}: the TLS handshake failed: {error}",
                hint="does it speak https? If not, base_url begins with http://",
                sent=False,
            )
        case errors.ProxyFailed():
            return UpstreamFailed(
                f"{where}: the proxy on the way failed: {error}",
                hint=_of_proxy(error, address),
                sent=False,
            )
        case errors.Unreachable():
            return UpstreamFailed(
                f"{where} refused the connection: {error}",
                hint="check that it runs and that its address is right",
                sent=False,
            )
        case errors.Unanswered():
            return UpstreamFailed(
                f"{where} closed the connection without an answer",
                hint=f"try again; look at its own log{_or_tls(address)}",
            )
        case errors.BrokeOff():
            return UpstreamFailed(f"{where} broke off in the middle", hint="try again; look at its own log")
        case errors.NotHttp():
            return UpstreamFailed(
                f"{where} failed: it does not speak HTTP: {error}", hint=f"check base_url{_or_tls(address)}"
            )
        case errors.BadAnswer():
            return UpstreamFailed(
                f"{where} gave an answer that cannot be read: {error}",
                hint="that server has to mend it, or a proxy before it",
            )
        case _:
            return UpstreamFailed(f"{where} failed: {error}", hint="look at its own log")


def _of_proxy(error: errors.ProxyFailed, address: str) -> str:
    if isinstance(error.__cause__, errors.Untrusted):
        return error.__cause__.remedy
    return f"check {address.partition(':')[0].upper()}_PROXY and NO_PROXY"


def _or_tls(address: str) -> str:
    """A server that wants TLS hangs up on who does not, or answers in TLS."""
    return "; does it speak https? Then base_url begins with https://" if address.startswith("http:") else ""
