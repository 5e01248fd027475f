"""The asynchronous client of a Reef daemon: `reef.AsyncClient()`. It needs httpx, loaded with this module."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

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
from reef.home import find_daemon, find_home, is_loopback, token_for

__all__ = ["AsyncClient", "Event", "Reply"]


class AsyncClient:
    """As `reef.Client`, with the same arguments, methods and errors. Many calls may run at once."""

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
        at = http_address(self.url, hint="check REEF_URL")
        self._http = httpx.AsyncClient(
            trust_env=not is_loopback(at.hostname or ""),
            verify=at.scheme == "https",  # without TLS there are no certificates to load
            timeout=timeout_s,
        )

    @classmethod
    def from_env(cls) -> "AsyncClient":
        """The client of the daemon that `REEF_URL` names, else of the one that runs here."""
        return cls()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection; the client cannot be used afterwards."""
        await self._http.aclose()

    async def post(
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
        return read_reply(await self._send(call))

    async def chat(
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
        return await self.post("/v1/chat/completions", body, scenario=scenario, tags=tags)

    async def report(
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
        return await self._json(
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

    async def reports(
        self, scenario: str | None = None, *, state: str | None = None, agent_record_id: str | None = None
    ) -> JSON:
        """`{reports: [{agent_record_id, score, feedback, references, state, pairs, ...}]}`."""
        call = _calls.reports(scenario or self.scenario, state, agent_record_id)
        return await self._json(call)

    async def records(
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
        return await self._json(
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

    async def record(self, record_id: str, scenario: str, *, raw: bool = False) -> JSON:
        """One record with its payload; `raw` adds the stored bytes in base64."""
        return await self._json(_calls.record(scenario, record_id, raw))

    async def explain(self, record_id: str) -> JSON:
        """One record and its story: release, reports, verdicts, step."""
        return await self._json(_calls.explain(record_id))

    async def scenarios(self, *, archived: bool = False) -> JSON:
        """`{scenarios: [{scenario, release_id, content_id, adapter, recipe, processor, surface, ...}]}`."""
        return await self._json(_calls.scenarios(archived))

    async def create_scenario(self, name: str, *, release_id: str | None = None) -> JSON:
        """Make a scenario, or answer the one that exists: `{scenario, release_id, content_id}`."""
        return await self._json(_calls.create_scenario(name, release_id))

    async def update_scenario(self, name: str, *, training_mode: str) -> JSON:
        """Set how it steps: `auto`, `manual` or `hybrid`."""
        return await self._json(_calls.update_scenario(name, training_mode))

    async def contract(self, scenario: str) -> JSON:
        """`{scenario, recipe, processor, surface, training_mode, required_request_types, report_schema}`."""
        return await self._json(_calls.contract(scenario))

    async def archive(self, scenario: str) -> JSON:
        """Archive a scenario: `{scenario, archived: [...]}`."""
        return await self._json(_calls.archive(scenario))

    async def releases(self, scenario: str) -> JSON:
        """`{scenario, releases: [...]}`, newest first."""
        return await self._json(_calls.releases(scenario))

    async def rollback(self, scenario: str, release_id: str) -> JSON:
        """Publish an earlier release's content again: `{scenario, release_id, content_id}`."""
        return await self._json(_calls.decide("rollback", scenario, release_id))

    async def promote(self, scenario: str, release_id: str) -> JSON:
        """Serve a candidate that waits for review; answers as `rollback`."""
        return await self._json(_calls.decide("promote", scenario, release_id))

    async def reject(self, scenario: str, release_id: str, *, reason: str | None = None) -> JSON:
        """Close a candidate that waits for review, unserved."""
        return await self._json(_calls.decide("reject", scenario, release_id, reason))

    async def diff(self, scenario: str, start: str | None, end: str) -> str:
        """The unified diff between two revisions; `start` None is the release before `end`, if any."""
        return await self._text(_calls.diff(scenario, start, end))

    async def harness(
        self, scenario: str | None = None, *, release_id: str | None = None, adapter: str | None = None
    ) -> JSON:
        """`{release_id, parent_release_id, content_id, files: {path: text}, entries, skipped, ...}`."""
        return await self._json(_calls.harness(scenario or self.scenario, release_id, adapter))

    async def adapters(self) -> JSON:
        """`{adapters: [{name, binary, trajectory_format, model_bindings, install}]}`."""
        return await self._json(_calls.adapters())

    async def train(
        self,
        text: str,
        *,
        scenario: str | None = None,
        session: str | None = None,
        release_id: str | None = None,
        agent_record_id: str | None = None,
    ) -> JSON:
        """Ask for a change in plain words: `{agent_record_id, scenario, request_type: "train"}`."""
        return await self._json(
            _calls.train(text, scenario or self.scenario, session, release_id, agent_record_id)
        )

    async def models(self) -> JSON:
        """`{object: "list", data: [{id, ...}]}`: what the upstreams offer."""
        return await self._json(_calls.models())

    async def status(self) -> JSON:
        """`{version, pid, home, url, started_at, serving, storage, scenarios, error}`."""
        return await self._json(_calls.status())

    async def steps(self, scenario: str | None = None, *, limit: int | None = None) -> JSON:
        """`{steps: [...]}`: what growing did, newest first."""
        return await self._json(_calls.steps(scenario or self.scenario, limit))

    async def step(self, scenario: str, number: int) -> JSON:
        """One step with its batch and episodes."""
        return await self._json(_calls.step(scenario, number))

    async def logs(self, *, after: int = 0, limit: int = 200) -> JSON:
        """`{lines: [{number, level, text}]}`: what the daemon logged since it started, oldest first."""
        return await self._json(_calls.logs(after, limit))

    async def cancel_step(self, scenario: str, number: int) -> JSON:
        """End a step that is under way, or that waits for money: `{scenario, step}`."""
        return await self._json(_calls.cancel_step(scenario, number))

    async def run_step(self, scenario: str, number: int) -> JSON:
        """Let a step run that waits for money or ended with an error: `{scenario, step, state}`."""
        return await self._json(_calls.run_step(scenario, number))

    async def events(
        self, scenario: str | None = None, *, last_event_id: str | None = None
    ) -> AsyncIterator[Event]:
        """The daemon's events as they happen, until it stops; `last_event_id` continues after one."""
        call = _calls.events(scenario or self.scenario, last_event_id)
        request = self._request(call, timeout_s=None)
        try:
            response = await self._http.send(request, stream=True)
            try:
                if response.status_code >= 400:
                    raise_for(Answer(response.status_code, response.headers, await response.aread()))
                reader = EventReader()
                async for chunk in response.aiter_bytes():
                    for event in reader.feed(chunk):
                        yield event
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise unreachable(self.url, _reason(error)) from error

    async def _json(self, call: Call) -> JSON:
        return read_json(await self._send(call))

    async def _text(self, call: Call) -> str:
        return read_text(await self._send(call))

    async def _send(self, call: Call) -> Answer:
        timeout_s = call.timeout_s or self.timeout_s
        try:
            response = await self._http.send(self._request(call, timeout_s))
        except httpx.TimeoutException as error:
            raise timed_out(call, timeout_s) from error
        except httpx.TransportError as error:
            raise unreachable(self.url, _reason(error)) from error
        return Answer(response.status_code, response.headers, response.content)

    def _request(self, call: Call, timeout_s: float | None) -> httpx.Request:
        return self._http.build_request(
            call.method,
            self.url + call.target,
            headers=call.wire_headers(self.token),
            content=call.content(),
            timeout=timeout_s,
        )


def _reason(error: Exception) -> str:
    return str(error).lower() or type(error).__name__
