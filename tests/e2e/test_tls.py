"""An upstream over TLS that is not trusted, as a user meets it."""

import contextlib
import socket
import ssl
import threading

import openai
import pytest

from tests.daemon.runtimes.http.servers import CERTIFICATE
from tests.e2e.terminal import Terminal


def test_a_certificate_that_is_not_trusted(here: Terminal) -> None:
    """`reef up` and a request say that it is the certificate, and what names one to trust."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    here.environ.pop("SSL_CERT_FILE", None)
    with socket.create_server(("127.0.0.1", 0)) as door:

        def hang_up() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with contextlib.suppress(ssl.SSLError, ConnectionError):
                        context.wrap_socket(door.accept()[0], server_side=True).close()

        threading.Thread(target=hang_up, daemon=True).start()
        url = f"https://localhost:{door.getsockname()[1]}"
        ran = here.reef("up", "--port", "0", "--upstream", url, "--model", "M", code=1)
        for part in ("its certificate is not trusted: self", "hint: start the daemon with SSL_CERT_FILE"):
            assert part in ran.err
        with (
            openai.OpenAI(base_url=f"{here.url}/v1", api_key=here.token, max_retries=0) as gpt,
            pytest.raises(openai.InternalServerError, match=r"certificate is not trusted.*SSL_CERT_FILE"),
        ):
            gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        door.shutdown(socket.SHUT_RDWR)
