"""What went wrong on the way to an upstream, in words that say how to mend it."""

import asyncio

import aiohttp

from reef.errors import ReefError, TimedOut, UpstreamFailed


def explain(error: Exception, name: str, address: str) -> ReefError:
    """The `UpstreamFailed` or `TimedOut` for an error of the client library."""
    where = f"upstream `{name}` at {address}"
    match error:
        case aiohttp.ConnectionTimeoutError():
            return TimedOut(
                f"{where} could not be reached in time",
                hint="check the address, or raise connect_timeout_s",
                sent=False,
            )
        case asyncio.TimeoutError():
            return TimedOut(f"{where} did not answer in time", hint="raise read_timeout_s of the upstream")
        case aiohttp.ClientConnectorDNSError():
            return UpstreamFailed(f"{where}: no such host", hint="check base_url and the network", sent=False)
        case aiohttp.ClientSSLError():
            return UpstreamFailed(
                f"{where}: the TLS handshake failed: {_cause(error)}",
                hint="check that base_url is right about http and https, and that the certificate is trusted",
                sent=False,
            )
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return UpstreamFailed(
                f"{where}: the proxy on the way failed: {_cause(error)}",
                hint="check HTTPS_PROXY and NO_PROXY",
                sent=False,
            )
        case aiohttp.ClientConnectorError():
            return UpstreamFailed(
                f"{where} refused the connection: {_cause(error)}", hint="is it running?", sent=False
            )
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return UpstreamFailed(f"{where} broke off in the middle", hint="try again; look at its own log")
        case aiohttp.ClientResponseError():
            said = error.message.partition("\n")[0].rstrip(":")
            return UpstreamFailed(f"{where} failed: it does not speak HTTP: {said}", hint="check base_url")
        case _:
            return UpstreamFailed(f"{where} failed: {_cause(error)}", hint="look at its own log")


def _cause(error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
