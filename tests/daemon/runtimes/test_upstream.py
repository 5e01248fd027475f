"""A provider over HTTP: what reaches it, and what is said when it cannot be reached."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.runtimes.http import client as client_module
from daemon.runtimes.upstream import HttpUpstream, full_base
from daemon.settings.model import UpstreamSection
from reef.errors import ConfigError, Invalid, ReefError, TimedOut, Unauthorized, UpstreamFailed
from reef.runtime import Dialect, ProviderRequest
from tests.daemon.runtimes.http.servers import HELLO, Peer, Server, serving
from tests.stub_provider import Fault, StubProvider

BODY = b'{"messages":[{"role":"user","content":"hi"}],"stream":true}'


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProvider]:
    with StubProvider() as started:
        yield started


def upstream(url: str, **options: object) -> HttpUpstream:
    section = UpstreamSection.model_validate({"name": "main", "base_url": url, **options})
    return HttpUpstream(section, {"KEY": "secret", "EMPTY": " "})


def ask(runtime: HttpUpstream, dialect: Dialect = "chat", headers: tuple[tuple[str, str], ...] = ()) -> bytes:
    async def run() -> bytes:
        path = {"chat": "/chat/completions?a=%2F", "messages": "/messages", "responses": "/responses"}[
            dialect
        ]
        await runtime.start()
        try:
            response = await runtime.send(ProviderRequest(dialect, path, headers, BODY))
            body = b"".join([chunk async for chunk in response.body])
            await response.close()
            await response.close()
            return body
        finally:
            await runtime.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://h:1", "http://h:1/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("https://h/api/v3/", "https://h/api/v3"),
        ("http://[::1]:5", "http://[::1]:5/v1"),
    ],
)
def test_the_base_of_an_address(url: str, base: str) -> None:
    assert full_base(url) == base


@pytest.mark.parametrize("url", ["localhost:1234", "ftp://h", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is no http address"):
        upstream(url)


def test_the_upstreams_own_key_replaces_the_clients(stub: StubProvider) -> None:
    runtime = upstream(stub.url, api_key_env="KEY")
    sent = (("authorization", "Bearer token"), ("x-api-key", "token"), ("user-agent", "ua"), ("te", "x"))
    ask(runtime, "chat", sent)
    asked = stub.asked[-1]
    assert asked.path == "/v1/chat/completions?a=%2F"
    assert asked.headers["authorization"] == "Bearer secret"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["user-agent"] == "ua"
    assert not {"x-api-key", "te", "accept", "anthropic-version"} & set(asked.headers)
    ask(runtime, "messages", (*sent, ("anthropic-version", "2026-10-21")))
    asked = stub.asked[-1]
    assert asked.headers["x-api-key"] == "secret"
    assert asked.headers["anthropic-version"] == "2026-10-21"
    ask(upstream(stub.url), "messages", sent)
    assert "authorization" not in stub.asked[-1].headers
    assert stub.asked[-1].headers["anthropic-version"] == "2023-06-01"


def test_a_key_that_is_not_set_is_named() -> None:
    for name in ("MISSING", "EMPTY"):
        with pytest.raises(ConfigError, match=f"{name}, which is not set"):
            upstream("http://h", api_key_env=name)


@pytest.mark.parametrize(("key", "why"), [("a\nb", "more than one line"), ("schlüssel", "no key has")])
def test_what_is_no_key_is_refused(key: str, why: str) -> None:
    section = UpstreamSection(name="main", base_url="http://h", api_key_env="KEY")
    with pytest.raises(ConfigError, match=f"KEY, which cannot be used\n.*{why}"):
        HttpUpstream(section, {"KEY": key})


def test_no_header_of_a_client_makes_another_request(stub: StubProvider) -> None:
    count = len(stub.asked)
    with pytest.raises(Invalid, match="line break"):
        ask(upstream(stub.url), "chat", (("x-a", "b\r\nhost: evil"),))
    assert len(stub.asked) == count


def test_a_key_from_a_file(stub: StubProvider, tmp_path: Path) -> None:
    file = tmp_path / "key"
    for wrong, why in ((None, "No such file"), ("", "empty"), ("a\nb", "more than one line")):
        if wrong is not None:
            file.write_text(wrong)
        with pytest.raises(ConfigError, match=why) as caught:
            upstream(stub.url, api_key_file=file)
        assert "`main`" in caught.value.message
        assert caught.value.hint
    file.write_text("sk-file\n")
    ask(upstream(stub.url, api_key_file=file))
    assert stub.asked[-1].headers["authorization"] == "Bearer sk-file"


@pytest.mark.parametrize("name", ["authorization", "x-api-key"])
def test_the_clients_own_credentials_may_go_on(stub: StubProvider, name: str) -> None:
    runtime = upstream(stub.url, auth="passthrough")
    ask(runtime, "messages", ((name, "Bearer own"), ("cookie", "c"), ("x-reef-token", "t")))
    headers = stub.asked[-1].headers
    assert headers[name] == "Bearer own"
    assert not {"authorization", "x-api-key", "cookie", "x-reef-token"} - {name} & set(headers)
    count = len(stub.asked)
    with pytest.raises(Unauthorized, match="brings none") as caught:
        ask(runtime, "messages")
    assert "x-reef-token" in caught.value.hint
    assert len(stub.asked) == count


def test_dialects_state_and_models(stub: StubProvider) -> None:
    runtime = upstream(stub.url, api=["openai"], model="own")
    assert [runtime.speaks(dialect) for dialect in ("chat", "messages", "responses")] == [True, False, True]
    assert runtime.state().state == "ready"
    assert runtime.copy_key() is None

    async def models(asked: HttpUpstream) -> list[str]:
        try:
            return list(await asked.models())
        finally:
            await asked.close()

    assert asyncio.run(models(runtime)) == ["own", "stub-model"]
    with nobody() as url:
        assert asyncio.run(models(upstream(url, model="own"))) == ["own"]
        assert asyncio.run(models(upstream(url))) == []


class nobody:  # noqa: N801
    """An address where nothing listens."""

    def __enter__(self) -> str:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._socket.close()


class talker:  # noqa: N801
    """A server that says these bytes to whoever comes, and hangs up when told to."""

    def __init__(self, said: bytes, *, hang_up: bool = True) -> None:
        self._said, self._hang_up = said, hang_up

    def __enter__(self) -> str:
        self._server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._talk, daemon=True).start()
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def _talk(self) -> None:
        self._peer, _ = self._server.accept()
        self._peer.recv(65536)
        self._peer.sendall(self._said)
        if self._hang_up:
            self._peer.close()

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "_peer"):
            self._peer.close()
        self._server.close()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"


@pytest.mark.parametrize(
    ("server", "kind", "words"),
    [
        (nobody, UpstreamFailed, "refused the connection"),
        (lambda: talker(b""), UpstreamFailed, "without an answer"),
        (lambda: talker(HEAD + b"half"), UpstreamFailed, "broke off"),
        (lambda: talker(b"SSH-2.0\r\n\r\n"), UpstreamFailed, "failed"),
        (lambda: talker(b"", hang_up=False), TimedOut, "did not answer in time"),
        (lambda: talker(HEAD + b"half", hang_up=False), TimedOut, "did not answer in time"),
    ],
    ids=["refused", "hangs up", "cut", "not http", "silent", "stalls"],
)
def test_failures_name_the_upstream_and_a_remedy(
    server: Callable[[], "nobody | talker"], kind: type[ReefError], words: str
) -> None:
    with server() as url:
        with pytest.raises(kind, match=words) as caught:
            ask(upstream(url, read_timeout_s=0.2))
        assert "`main`" in caught.value.message
        assert url in caught.value.message
        assert caught.value.hint


def test_tls_and_unknown_hosts_are_told_apart(stub: StubProvider) -> None:
    with pytest.raises(UpstreamFailed, match="TLS"):
        ask(upstream(stub.url.replace("http:", "https:")))
    with pytest.raises(UpstreamFailed, match="no such host"):
        ask(upstream("http://nowhere.invalid"))


def test_a_failed_call_shows_in_the_state_until_one_succeeds(stub: StubProvider) -> None:
    with nobody() as url:
        runtime = upstream(url)
        with pytest.raises(UpstreamFailed):
            ask(runtime)
        assert (runtime.state().state, "refused" in runtime.state().detail) == ("down", True)
        runtime.base_url = full_base(stub.url)
        ask(runtime)
        assert runtime.state().state == "ready"


def test_closing_a_response_ends_the_upstream_call(stub: StubProvider) -> None:
    async def run() -> None:
        runtime = upstream(stub.url)
        response = await runtime.send(ProviderRequest("chat", "/chat/completions", (), BODY, True))
        await anext(aiter(response.body))
        await response.close()
        await runtime.close()

    stub.event_delay_s = 0.05
    stub.left.clear()
    asyncio.run(run())
    stub.event_delay_s = 0.0
    assert stub.left.wait(5)


def test_large_bodies_pass_whole(stub: StubProvider) -> None:
    async def run() -> None:
        runtime = upstream(stub.url)
        large = b'{"messages":[{"role":"user","content":"' + b"x" * 3_000_000 + b'"}]}'
        response = await runtime.send(ProviderRequest("chat", "/chat/completions", (), large))
        [chunk async for chunk in response.body]
        assert stub.asked[-1].body == large
        await runtime.close()

    stub.answer = lambda asked: Fault(400)
    asyncio.run(run())


def test_it_tells_when_a_request_has_left(stub: StubProvider) -> None:
    """From then on it may cost money: one that never found a connection does not."""

    async def told(url: str) -> int:
        calls: list[None] = []
        runtime = upstream(url, retries=0)
        request = ProviderRequest("chat", "/chat/completions", (), BODY, on_sent=lambda: calls.append(None))
        try:
            response = await runtime.send(request)
        except UpstreamFailed:
            return len(calls)
        finally:
            await runtime.close()
        await response.close()
        return len(calls)

    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        assert asyncio.run(told(f"http://127.0.0.1:{unheard.getsockname()[1]}")) == 0
    assert asyncio.run(told(stub.url)) == 1


def test_once_closed_it_asks_nobody_until_it_is_started_again(stub: StubProvider) -> None:
    """As a retry does that slept when the daemon stopped."""
    request = ProviderRequest("chat", "/chat/completions", (), b'{"messages":[]}')

    async def run() -> None:
        runtime = upstream(stub.url)
        stub.asked.clear()
        stub.answer = lambda asked: "well"
        await (await runtime.send(request)).close()
        await runtime.close()
        with pytest.raises(UpstreamFailed, match="was not asked") as caught:
            await runtime.send(request)
        assert not caught.value.sent
        assert await runtime.models() == []
        assert len(stub.asked) == 1
        await runtime.start()
        assert (await runtime.send(request)).status == 200
        await runtime.close()

    asyncio.run(run())


def test_a_request_does_not_show_its_keys() -> None:
    request = ProviderRequest("chat", "/", (("authorization", "Bearer secret"),), b"text")
    assert "secret" not in repr(request)


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (b"", "closed the connection without an answer"),
        (b"HTTP/1.1 408 Late\r\nconnection: close\r\n\r\n", "answered 408"),
    ],
    ids=["end", "408"],
)
def test_a_try_that_met_the_end_of_a_kept_connection_is_told(
    monkeypatch: pytest.MonkeyPatch, last: bytes, told: str
) -> None:
    """It is repeated with `retries = 0` too, and no part of what happened is left out."""
    monkeypatch.setattr(client_module, "AT_ONCE_S", 30.0)

    async def talk(peer: Peer, server: Server) -> None:
        await peer.request()
        await peer.say(HELLO)
        if server.peers == 1:
            await peer.request()
            await peer.say(last)

    async def run() -> list[ProviderRequest]:
        async with serving(talk) as server:
            runtime = upstream(server.url)
            await runtime.start()
            sent: list[ProviderRequest] = []
            try:
                for _ in range(2):
                    sent.append(ProviderRequest("chat", "/chat/completions", (), BODY))
                    response = await runtime.send(sent[-1])
                    assert b"".join([chunk async for chunk in response.body]) == b"hello"
                    await response.close()
            finally:
                await runtime.close()
            return sent

    first, second = asyncio.run(run())
    assert first.attempts == []
    assert len(second.attempts) == 1
    assert second.attempts[0].startswith("upstream `main` ")
    assert told in second.attempts[0]
