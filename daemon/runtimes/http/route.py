"""Where a server is, and the proxy on the way that the environment names."""

from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"})  # noqa: S104  # names, not a bind
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Place:
    """A server's name or address, and its port."""

    host: str
    port: int
    tls: bool

    @property
    def shown(self) -> str:
        """As in a URL, always with the port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def header(self) -> str:
        """As in a `host` header."""
        usual = self.port == (443 if self.tls else 80)
        return self.shown.rpartition(":")[0] if usual else self.shown


@dataclass(frozen=True, slots=True)
class Proxy:
    """`trouble` says why it cannot be used; `authorization` is what it wants to see."""

    place: Place
    authorization: str | None = field(default=None, repr=False)
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """The way to a base URL. Requests go to `prefix` + path."""

    place: Place
    proxy: Proxy | None
    prefix: str

    @property
    def fixed(self) -> list[str]:
        """Header lines that each request has."""
        lines = [f"host: {self.place.header}"]
        if self.proxy is not None and self.proxy.authorization and not self.place.tls:
            lines.append(f"proxy-authorization: {self.proxy.authorization}")
        return lines


def route_to(base_url: str) -> Route:
    """The way to an http(s) URL by the environment now; never over a proxy to this machine itself."""
    parts = urlsplit(base_url)
    place = _place(parts.scheme, parts.hostname or "", parts.port)
    proxy = _proxy(parts.scheme, parts.hostname or "")
    path = quote(parts.path, safe="/%:@!$&'()*+,;=~")
    prefix = f"http://{place.header}{path}" if proxy is not None and not place.tls else path
    return Route(place, proxy, prefix)


def _place(scheme: str, host: str, port: int | None) -> Place:
    return Place(_ascii(host), port or _PORTS[scheme], scheme == "https")


def _ascii(host: str) -> str:
    """A name as the network knows it; what is none there has no address either."""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return quote(host)


def _proxy(scheme: str, host: str) -> Proxy | None:
    if host in LOOPBACK or proxy_bypass(host):
        return None
    url = getproxies().get(scheme)
    if url is None:
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port
    except ValueError:
        return Proxy(Place("", 0, False), trouble="its address has no such port")
    if parts.scheme not in _PORTS or not parts.hostname:
        return Proxy(Place("", 0, False), trouble="only http and https proxies are supported")
    authorization = None
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(user.encode()).decode()}"
    return Proxy(_place(parts.scheme, parts.hostname, port), authorization)
