"""The client of a Reef daemon for Python programs: `reef.Client()`.

Standard library only, so that the command line starts at once. One instance holds one connection and may
be shared between threads; requests then wait for each other.
"""

import http.client
import select
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from reef import _calls
from reef._protocol import (
    DEFAULT_TIMEOUT_S,
    JSON,
    Answer,
    Call,
    Reply,
    raise_for,
    read_json,
    read_reply,
    read_text,
    timed_out,
    unreachable,
)
from reef._sse import Event, EventReader
from reef._url import http_address
from reef.home import find_daemon, find_home, token_for

__all__ = ["Client", "Event", "Reply"]


class Client:
    """Talks to one daemon.

    Without a `url` it finds the daemon: `REEF_URL`, else the one that runs in `home` (default: the home of
    the working folder). The token is `token`, else `REEF_TOKEN`, else the one kept in the home.
    `scenario` is used where a method is given none.

    Raises:
        Invalid: `url` is no http address.
        DaemonUnreachable: no daemon runs (each method raises it when the daemon goes away).
        ReefError: the class that the daemon's answer names.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        scenario: str | None = None,
        home: Path | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        address = None if url is not None else find_daemon(home=home)
        self.url = (url or (address.url if address else "")).rstrip("/")
        self.token = token or (address.token if address else token_for(self.url, home or find_home()))
        self.scenario = scenario
        self.timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None
        self._lock = threading.Lock()

    @classmethod
    def from_env(cls) -> "Client":
        """The client of the daemon that `REEF_URL` names, else of the one that runs here."""
        return cls()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        scenario: str | None = None,
        tags: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Reply:
        """Send a provider request (`/v1/chat/completions`, `/v1/messages`, ...) as it is, not streamed.

        `tags` (`session`, `run`, ...) are stored with the record. Answers `(json, receipt)`.
        """
        call = _calls.post(path, body, scenario or self.scenario, tags or {}, timeout_s)
        return read_reply(self._send(call))

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]] | str,
        *,
        scenario: str | None = None,
        tags: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> Reply:
        """A chat completion: `(json, receipt)`. A plain string is one user message.

        `parameters` (`model`, `temperature`, ...) go into the body unchanged.
        """
        turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
        body = {"messages": turns, **parameters}
        return self.post("/v1/chat/completions", body, scenario=scenario, tags=tags)

    def report(
        self,
        references: Sequence[str] = (),
        *,
        score: float | None = None,
        feedback: str | Mapping[str, Any] | None = None,
        scenario: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        preferred: str | None = None,
        over: str | None = None,
        agent_record_id: str | None = None,
    ) -> JSON:
        """Report on receipts: `{agent_record_id, scenario, request_type}`, and `ignored` and `hint` if any.

        A `feedback` object may carry `correction`, the answer that would have been right. With an
        `agent_record_id` of your own the call is safe to repeat.
        """
        return self._json(
            _calls.report(
                references,
                score=score,
                feedback=feedback,
                scenario=scenario or self.scenario,
                metadata=metadata,
                preferred=preferred,
                over=over,
                agent_record_id=agent_record_id,
            )
        )

    def reports(
        self, scenario: str | None = None, *, state: str | None = None, agent_record_id: str | None = None
    ) -> JSON:
        """`{reports: [{agent_record_id, score, feedback, references, state, pairs, ...}]}`."""
        call = _calls.reports(scenario or self.scenario, state, agent_record_id)
        return self._json(call)

    def records(
        self,
        scenario: str | None = None,
        *,
        after_sequence: int | None = None,
        limit: int | None = None,
        request_type: str | None = None,
        order: str | None = None,
        payload: bool | None = None,
        kind: str | None = None,
        status: str | None = None,
        run: str | None = None,
        session: str | None = None,
        reported: bool | None = None,
        after: str | None = None,
        text: str | None = None,
    ) -> JSON:
        """`{records: [...], next_after_sequence, next_after}`, oldest first unless `order="desc"`.

        `after_sequence` goes on within a scenario, `after` (a receipt) over all.
        `reported`: only those that a report names, or only those that none does. `text`: only those in
        which it was said; `limit` are looked through, so go on until `next_after` is the one you gave.
        """
        return self._json(
            _calls.records(
                scenario or self.scenario,
                after_sequence=after_sequence,
                limit=limit,
                request_type=request_type,
                order=order,
                payload=payload,
                kind=kind,
                status=status,
                run=run,
                session=session,
                reported=reported,
                after=after,
                text=text,
            )
        )

    def record(self, record_id: str, scenario: str, *, raw: bool = False) -> JSON:
        """One record with its payload; `raw` adds the stored bytes in base64."""
        return self._json(_calls.record(scenario, record_id, raw))

    def explain(self, record_id: str) -> JSON:
        """One record and its story: release, reports, verdicts, step."""
        return self._json(_calls.explain(record_id))

    def scenarios(self, *, archived: bool = False) -> JSON:
        """`{scenarios: [{scenario, release_id, content_id, adapter, recipe, processor, surface, ...}]}`."""
        return self._json(_calls.scenarios(archived))

    def create_scenario(self, name: str, *, release_id: str | None = None) -> JSON:
        """Make a scenario, or answer the one that exists: `{scenario, release_id, content_id}`."""
        return self._json(_calls.create_scenario(name, release_id))

    def update_scenario(self, name: str, *, training_mode: str) -> JSON:
        """Set how it steps: `auto`, `manual` or `hybrid`."""
        return self._json(_calls.update_scenario(name, training_mode))

    def contract(self, scenario: str) -> JSON:
        """`{scenario, recipe, processor, surface, training_mode, required_request_types, report_schema}`."""
        return self._json(_calls.contract(scenario))

    def archive(self, scenario: str) -> JSON:
        """Archive a scenario: `{scenario, archived: [...]}`."""
        return self._json(_calls.archive(scenario))

    def releases(self, scenario: str) -> JSON:
        """`{scenario, releases: [...]}`, newest first."""
        return self._json(_calls.releases(scenario))

    def rollback(self, scenario: str, release_id: str) -> JSON:
        """Publish an earlier release's content again: `{scenario, release_id, content_id}`."""
        return self._json(_calls.decide("rollback", scenario, release_id))

    def promote(self, scenario: str, release_id: str) -> JSON:
        """Serve a candidate that waits for review; answers as `rollback`."""
        return self._json(_calls.decide("promote", scenario, release_id))

    def reject(self, scenario: str, release_id: str, *, reason: str | None = None) -> JSON:
        """Close a candidate that waits for review, unserved."""
        return self._json(_calls.decide("reject", scenario, release_id, reason))

    def diff(self, scenario: str, start: str | None, end: str) -> str:
        """The unified diff between two revisions; `start` None is the release before `end`, if any."""
        return self._text(_calls.diff(scenario, start, end))

    def harness(
        self, scenario: str | None = None, *, release_id: str | None = None, adapter: str | None = None
    ) -> JSON:
        """`{release_id, parent_release_id, content_id, files: {path: text}, entries, skipped, ...}`."""
        return self._json(_calls.harness(scenario or self.scenario, release_id, adapter))

    def adapters(self) -> JSON:
        """`{adapters: [{name, binary, trajectory_format, model_bindings, install}]}`."""
        return self._json(_calls.adapters())

    def train(
        self,
        text: str,
        *,
        scenario: str | None = None,
        session: str | None = None,
        release_id: str | None = None,
        agent_record_id: str | None = None,
    ) -> JSON:
        """Ask for a change in plain words: `{agent_record_id, scenario, request_type: "train"}`."""
        return self._json(_calls.train(text, scenario or self.scenario, session, release_id, agent_record_id))

    def models(self) -> JSON:
        """`{object: "list", data: [{id, ...}]}`: what the upstreams offer."""
        return self._json(_calls.models())

    def status(self) -> JSON:
        """`{version, pid, home, url, started_at, serving, storage, scenarios, error}`."""
        return self._json(_calls.status())

    def steps(self, scenario: str | None = None, *, limit: int | None = None) -> JSON:
        """`{steps: [...]}`: what growing did, newest first."""
        return self._json(_calls.steps(scenario or self.scenario, limit))

    def step(self, scenario: str, number: int) -> JSON:
        """One step with its batch and episodes."""
        return self._json(_calls.step(scenario, number))

    def logs(self, *, after: int = 0, limit: int = 200) -> JSON:
        """`{lines: [{number, level, text}]}`: what the daemon logged since it started, oldest first."""
        return self._json(_calls.logs(after, limit))

    def cancel_step(self, scenario: str, number: int) -> JSON:
        """End a step that is under way, or that waits for money: `{scenario, step}`."""
        return self._json(_calls.cancel_step(scenario, number))

    def run_step(self, scenario: str, number: int) -> JSON:
        """Let a step run that waits for money or ended with an error: `{scenario, step, state}`."""
        return self._json(_calls.run_step(scenario, number))

    def events(self, scenario: str | None = None, *, last_event_id: str | None = None) -> Iterator[Event]:
        """The daemon's events as they happen, until it stops; `last_event_id` continues after one.

        It has a connection of its own. Raises `DaemonUnreachable` when the connection breaks.
        """
        call = _calls.events(scenario or self.scenario, last_event_id)
        connection = self._open(timeout_s=None)
        try:
            response = self._ask(connection, call)
            if response.status >= 400:
                raise_for(_answer(response))
            reader = EventReader()
            while chunk := response.read1(65536):
                yield from reader.feed(chunk)
        except (OSError, http.client.HTTPException) as error:
            raise unreachable(self.url, _reason(error)) from error
        finally:
            connection.close()

    def _json(self, call: Call) -> JSON:
        return read_json(self._send(call))

    def _text(self, call: Call) -> str:
        return read_text(self._send(call))

    def _send(self, call: Call) -> Answer:
        timeout_s = call.timeout_s or self.timeout_s
        with self._lock:
            connection = self._connected(timeout_s)
            try:
                return _answer(self._ask(connection, call))
            except TimeoutError as error:
                self.close()
                raise timed_out(call, timeout_s) from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                raise unreachable(self.url, _reason(error)) from error

    def _connected(self, timeout_s: float) -> http.client.HTTPConnection:
        """The open connection, unless the daemon has closed it in the meantime; else a new one."""
        if self._connection is not None and self._connection.sock is not None:
            readable = select.poll()
            readable.register(self._connection.sock, select.POLLIN)
            if not readable.poll(0):
                self._connection.sock.settimeout(timeout_s)
                return self._connection
            self.close()
        self._connection = self._open(timeout_s)
        return self._connection

    def _open(self, timeout_s: float | None) -> http.client.HTTPConnection:
        address = http_address(self.url, hint="check REEF_URL")
        assert address.hostname is not None
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        return kind(address.hostname, address.port, timeout=timeout_s)

    def _ask(self, connection: http.client.HTTPConnection, call: Call) -> http.client.HTTPResponse:
        target = urlsplit(self.url).path + call.target
        connection.request(call.method, target, call.content(), call.wire_headers(self.token))
        return connection.getresponse()


def _answer(response: http.client.HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
