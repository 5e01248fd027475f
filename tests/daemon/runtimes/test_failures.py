import pytest

from daemon.runtimes.failures import explain
from daemon.runtimes.http.errors import ProxyFailed


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_fails_is_told_with_the_variable_that_names_it(scheme: str) -> None:
    error = explain(ProxyFailed("it said 407"), "main", f"{scheme}://api.test/v1")
    assert "it said 407" in error.message
    assert error.hint == f"check {scheme.upper()}_PROXY and NO_PROXY"
