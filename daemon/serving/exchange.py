"""One exchange, from a request to its durable record."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from time import perf_counter
from typing import Literal

from daemon.records.draft import Draft
from daemon.runtimes.router import Router
from daemon.serving.asking import ask
from daemon.serving.bridging import ESTIMATE, EVENTS, JSON, cannot_count, count, typed
from daemon.serving.budgets import Budgets
from daemon.serving.call import Answer, Call
from daemon.serving.conversation import Examples, Said, session_key
from daemon.serving.keeper import Keeper
from daemon.serving.own import OwnCalls
from daemon.serving.ports import RecordAppender, ScenarioSource
from daemon.serving.reading import is_event_stream, is_object, no_answer, no_stream, read, unwanted_stream
from daemon.serving.refusal import KEPT_STATUS, refusal, upstream_refused
from daemon.serving.served import Served
from daemon.serving.stream import Stream
from daemon.serving.thoughts import Thoughts
from daemon.serving.turn import ANSWER_LIMIT, Turn
from daemon.wire.codec import codec_for
from daemon.wire.encoding import decode, decoder, is_plain
from daemon.wire.facts import RequestFacts
from daemon.wire.headers import for_client
from reef.errors import Invalid, OverBudget, ReefError, TimedOut, TooLarge, Unavailable, UpstreamFailed
from reef.ids import new_receipt, now
from reef.runtime import Header, ProviderResponse, Runtime


class Exchange:
    """Forwards provider requests, puts the served release in front of them, and records what happened.

    `on_record` is called with each draft soon after it is stored; `upstream_of` names the upstream of a
    scenario that has one of its own; `budgets` say whether a scenario may ask at all.
    """

    def __init__(
        self,
        router: Router,
        records: RecordAppender,
        scenarios: ScenarioSource,
        *,
        on_record_failure: Literal["refuse", "serve"] = "refuse",
        on_record: Callable[[Draft], None] | None = None,
        upstream_of: Callable[[str], str | None] = lambda _: None,
        budgets: Budgets | None = None,
    ) -> None:
        self.router = router
        self.budgets = budgets or Budgets()
        self.upstream_of = upstream_of
        self.keeper = Keeper(records, on_record_failure, on_record, self.budgets.count)
        self.complete = OwnCalls(router, self.keeper, upstream_of).complete
        self._scenarios = scenarios
        self._examples = Examples()
        self._thoughts = Thoughts()

    async def answer(self, call: Call) -> Answer:
        """Answer a request. What the upstream refuses or breaks is an answer too (and a record).

        Cancelling it ends the upstream call and leaves a record `aborted`.

        Raises:
            ReefError: nothing was asked of an upstream (malformed, unknown scenario, no upstream for the
                dialect, loading), or the record could not be stored.
        """
        arrived, began = now(), perf_counter()
        codec = codec_for(call.dialect)
        facts = codec.facts(call.body)
        runtimes = self.router.route(call.dialect, facts.model, self.upstream_of(call.scenario))
        if self.keeper.failing:
            await self.keeper.ready()
        session = call.session
        served, conversation, said = await self._served(call, session, facts)
        body = call.body
        if served.prefix:
            body = codec.inject(body, served.prefix)
        draft = _draft(call, session, served, runtimes[0], arrived)
        draft.model = facts.model or runtimes[0].model
        draft.facts = facts
        draft.conversation = conversation
        opens = said if conversation is None and call.kind == "turn" else None
        turn = Turn(call, draft, codec, facts, opens, began)
        if call.kind == "count_tokens":
            if not runtimes[0].speaks(call.dialect):
                return await self._estimated(turn)
            runtimes = tuple(runtime for runtime in runtimes if runtime.speaks(call.dialect))
        response: ProviderResponse | None = None
        try:
            if call.kind != "count_tokens":
                self.budgets.admit(call.scenario)
            try:
                response = await ask(turn, self.router, self._thoughts, runtimes, body)
            except Unavailable as error:
                if not draft.attempts:
                    raise
                return await self._failed(turn, error, None)  # one was asked before this one said "not now"
            draft.http_status = response.status
            draft.upstream_request_id = response.header("request-id") or response.header("x-request-id")
            draft.aliases = (draft.upstream_request_id,) if draft.upstream_request_id else ()
            wanted = facts.stream and call.kind == "turn"
            if response.status < 300 and await is_event_stream(response, wanted=wanted):
                if not wanted:
                    raise unwanted_stream(draft.upstream_name)
                return self._stream(turn, response)
            return await self._whole(turn, response)
        except (UpstreamFailed, TimedOut) as error:
            return await self._failed(turn, error, response)
        except OverBudget as error:
            draft.upstream_name = None  # nobody was asked
            return await self._failed(turn, error, response)
        except asyncio.CancelledError:
            if not call.settled:
                await self.keeper.keep_anyway(turn.called_off())
            raise
        finally:
            if response is not None and not draft.stream:
                await response.close()

    async def _served(
        self, call: Call, session: str | None, facts: RequestFacts
    ) -> tuple[Served, str | None, Said | None]:
        """The release for this request, its conversation where one is known already, and what it says where
        that had to be found out."""
        scenario = call.scenario
        try:
            head = await self._scenarios.serve(scenario, start=call.start)
        except Unavailable:  # it is new, and cannot be made
            if not self.keeper.serves_anyway or call.start is not None:
                raise
            head = await self._scenarios.default(scenario)
        if brought := call.tags.get("release"):
            return Served(scenario, brought, ""), None, None
        if head.prefix is None:
            return head, session_key(session) if session else None, None
        if session is not None:
            key = session_key(session)
            return await self._scenarios.pinned(scenario, key) or head, key, None
        said = Said(facts.messages, self._examples)
        for key in said.history():
            if (pinned := await self._scenarios.pinned(scenario, key)) is not None:
                return pinned, key, said
        return head, None, said

    def _stream(self, turn: Turn, response: ProviderResponse) -> Answer:
        encoding = response.header("content-encoding") or ""
        unpack = None if is_plain(encoding) else _upstream_decoder(encoding)
        stored = not (self.keeper.serves_anyway and self.keeper.failing)  # as far as is known
        headers = signed_headers(typed(response.headers, EVENTS, turn), turn.draft, stored=stored)
        turn.draft.stream = True
        return Answer(response.status, headers, pump=Stream(turn, response, self.keeper, unpack).pump)

    async def _whole(self, turn: Turn, response: ProviderResponse) -> Answer:
        """Read a buffered answer, store it, then hand it out in plain bytes."""
        async for chunk in response.body:
            turn.take(chunk)
        body = b"".join(turn.arrived)
        encoding = response.header("content-encoding")
        if not is_plain(encoding):
            try:
                body = decode(body, encoding, limit=ANSWER_LIMIT)
            except (Invalid, TooLarge) as error:
                raise UpstreamFailed(
                    f"the upstream's answer cannot be read: {error.message}", hint="look at its own log"
                ) from error
            turn.arrived = [body]
        status, crossing = response.status, turn.crossing
        headers = typed(response.headers, JSON, turn)
        if cannot_count(turn, status, body):
            return await self._estimated(turn)
        if 200 <= status < 300:
            if not is_object(body):
                raise no_answer(turn.draft.upstream_name, body)
            if turn.facts.stream and turn.call.kind == "turn":
                raise no_stream(turn.draft.upstream_name, body)
            if crossing:
                body = crossing.answer(body)
            elif turn.call.kind == "turn":
                read(turn.codec, turn.draft, body)
            stored = await self.keeper.keep(turn.end("complete"))
        elif 400 <= status < 500:
            refused = upstream_refused(turn.draft.upstream_name or "", status, body)
            stored = await self.keeper.keep(turn.end("failed", refused))
            status = status if status in KEPT_STATUS else 400
            if crossing:
                body = crossing.error(body, status)
            elif not body.strip():  # SDKs would have nothing to show
                headers = [JSON, *(pair for pair in headers if pair[0] != "content-type")]
                body = turn.codec.error_body(refused, status)
        else:
            raise upstream_refused(
                turn.draft.upstream_name or "", status, body, location=response.header("location")
            )
        return Answer(status, signed_headers(headers, turn.draft, stored=stored), body)

    async def _estimated(self, turn: Turn) -> Answer:
        """Answer `count_tokens` where no upstream does."""
        body = count(turn)
        stored = await self.keeper.keep(turn.end("complete"))
        return Answer(200, [*signed_headers([JSON], turn.draft, stored=stored), ESTIMATE], body)

    async def _failed(self, turn: Turn, error: ReefError, response: ProviderResponse | None) -> Answer:
        stored = await self.keeper.keep(turn.end("failed", error))
        answer = refusal(error, turn.codec, advice_from=response.headers if response else ())
        answer.headers = signed_headers(answer.headers, turn.draft, stored=stored)
        return answer


def signed_headers(headers: Sequence[Header], draft: Draft, *, stored: bool) -> list[Header]:
    """An answer's headers with the receipt and the release that the record names."""
    own = for_client(headers)
    if draft.release_id:
        own.append(("x-reef-release-id", draft.release_id))
    if stored:
        own.append(("x-reef-agent-record-id", draft.id))
        if draft.upstream_request_id is None:
            own += [("request-id", draft.id), ("x-request-id", draft.id)]
    return own


def _draft(call: Call, session: str | None, served: Served, runtime: Runtime, arrived: datetime) -> Draft:
    return Draft(
        id=new_receipt(),
        scenario=served.scenario,
        created_at=arrived,
        dialect=call.dialect,
        kind=call.kind,
        request=call.body,
        run=call.run,
        session=session,
        tags=call.tags,
        release_id=served.release_id or None,
        content_id=served.content_id or None,
        upstream_name=runtime.name,
    )


def _upstream_decoder(encoding: str) -> Callable[[bytes], bytes]:
    try:
        return decoder(encoding)
    except Invalid as error:
        raise UpstreamFailed(f"the upstream's stream cannot be read: {error.message}") from error
