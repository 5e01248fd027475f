import pytest

from daemon.runtimes.failures import explain
from daemon.runtimes.http.errors import (
    BadAnswer,
    BrokeOff,
    HttpError,
    NotHttp,
    ProxyFailed,
    TlsFailed,
    Unanswered,
    Untrusted,
)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_fails_is_told_with_the_variable_that_names_it(scheme: str) -> None:
    error = explain(ProxyFailed("it said 407"), "main", f"{scheme}://api.test/v1")
    assert "it said 407" in error.message
    assert error.hint == f"check {scheme.upper()}_PROXY and NO_PROXY"


def test_only_what_speaks_no_http_is_said_to_have_a_wrong_address() -> None:
    stranger = explain(NotHttp("Expected HTTP/"), "main", "http://api.test/v1")
    assert "does not speak HTTP" in stranger.message
    assert stranger.hint.startswith("check base_url")
    careless = explain(BadAnswer("Duplicate Content-Length"), "main", "http://api.test/v1")
    assert "cannot be read: Duplicate Content-Length" in careless.message
    assert "base_url" not in careless.hint


def test_who_said_nothing_did_not_stop_in_the_middle() -> None:
    silent = explain(Unanswered("the connection ended"), "main", "http://api.test/v1")
    assert silent.message.endswith("closed the connection without an answer")
    begun = explain(BrokeOff("the connection ended"), "main", "http://api.test/v1")
    assert begun.message.endswith("broke off in the middle")


@pytest.mark.parametrize("error", [Unanswered("it ended"), NotHttp("Expected HTTP/")])
def test_who_may_want_tls_is_asked_whether_it_is_https(error: HttpError) -> None:
    asked = "does it speak https?"
    assert asked in explain(error, "main", "http://api.test/v1").hint
    assert asked not in explain(error, "main", "https://api.test/v1").hint
    assert "http://" in explain(TlsFailed("wrong version"), "main", "https://api.test/v1").hint


def test_a_certificate_that_is_not_trusted_is_told_with_its_remedy() -> None:
    refused = Untrusted("self-signed certificate", "set SSL_CERT_FILE")
    failed = explain(refused, "main", "https://api.test/v1")
    assert failed.message.endswith("its certificate is not trusted: self-signed certificate")
    assert failed.hint == "set SSL_CERT_FILE"
    over = ProxyFailed(str(refused))
    over.__cause__ = refused
    assert explain(over, "main", "https://api.test/v1").hint == "set SSL_CERT_FILE"
