"""Whose certificates are trusted, and what to do about one that is not."""

import logging
import os
import ssl
from collections.abc import Mapping

from daemon.runtimes.http.errors import Untrusted

log = logging.getLogger("reef.runtimes")

_FILE, _FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"
_WRONG_NAME = (62, 64)
"""OpenSSL's codes for a certificate of another host, and of another address."""
_WRONG_TIME = (9, 10)
"""Not valid yet, and no longer."""


def trusted() -> ssl.SSLContext:
    """TLS as the system trusts it (`SSL_CERT_FILE` and `SSL_CERT_DIR` included). Reads files; one that is
    missing is a warning in the log, as others may do."""
    if missing := _missing(os.environ):
        log.warning("%s", missing)
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def untrusted(error: ssl.SSLCertVerificationError, environ: Mapping[str, str] = os.environ) -> Untrusted:
    """The error for a certificate that was refused, with what mends it."""
    why = str(error.verify_message).rstrip(".")
    if error.verify_code in _WRONG_NAME:
        return Untrusted(why, "base_url must name the host that the certificate is made out to")
    if error.verify_code in _WRONG_TIME:
        return Untrusted(why, "the server needs a new certificate, or this machine's clock is wrong")
    if missing := _missing(environ):
        return Untrusted(f"{why}; {missing}", "name a file that is there, and start the daemon anew")
    named = f", which is {environ[_FILE]} now" if environ.get(_FILE) else ""
    return Untrusted(
        why,
        "start the daemon with SSL_CERT_FILE naming a file (PEM) that holds the certificate, or that of who "
        f"issued it{named}",
    )


def _missing(environ: Mapping[str, str]) -> str:
    """Which variable names certificates that are not there; nobody else says so."""
    for name, there in ((_FILE, os.path.isfile), (_FOLDER, _is_any_there)):
        if (path := environ.get(name)) and not there(path):
            return f"{name} names {path}, which is not there"
    return ""


def _is_any_there(folders: str) -> bool:
    """Whether one of the folders is there, which are named in a list as in PATH."""
    return any(map(os.path.isdir, folders.split(os.pathsep)))
