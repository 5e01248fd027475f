"""One exchange over a bridge: the request as the upstream gets it, and its answer as the client does."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from daemon.wire.bridge import (
    chat,
    chat_answer,
    chat_check,
    messages,
    messages_answer,
    messages_check,
    responses,
    responses_answer,
    responses_check,
)
from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.names import Names, fitted
from daemon.wire.bridge.neutral import Answer, Request, Usage, unthinking
from daemon.wire.bridge.translator import Translator
from daemon.wire.codec import codec_for
from daemon.wire.errors import error_in, said_in, shown
from daemon.wire.parsing import forgiving
from daemon.wire.values import Json, dump, load_object, mappings, strings
from reef.errors import Invalid, UpstreamFailed
from reef.runtime import Dialect, Header, Parsed

_TO_REQUEST: dict[Dialect, Callable[[Json], Request]] = {
    "chat": chat.to_neutral_request,
    "messages": messages.to_neutral_request,
    "responses": responses.to_neutral_request,
}
_CHECK: dict[Dialect, Callable[[Json], None]] = {
    "chat": chat_check.check,
    "messages": messages_check.check,
    "responses": responses_check.check,
}
_FROM_REQUEST: dict[Dialect, Callable[[Request], tuple[Json, Dropped]]] = {
    "chat": chat.from_neutral_request,
    "messages": messages.from_neutral_request,
    "responses": responses.from_neutral_request,
}
_TO_ANSWER: dict[Dialect, Callable[[Json], Answer]] = {
    "chat": chat_answer.to_neutral_answer,
    "messages": messages_answer.to_neutral_answer,
    "responses": responses_answer.to_neutral_answer,
}
_FROM_ANSWER: dict[Dialect, Callable[[Answer, Names], Json]] = {
    "chat": chat_answer.from_neutral_answer,
    "messages": messages_answer.from_neutral_answer,
    "responses": responses_answer.from_neutral_answer,
}
_FIELDS = {"chat": chat.FIELDS, "messages": messages.FIELDS, "responses": responses.FIELDS}
_SAID: dict[Dialect, str] = {"chat": "messages", "messages": "messages", "responses": "input"}
"""Where the conversation stands."""

_LOGIN = "sk-ant-oat"
"""Begins the token of a subscription, which stays a bearer's."""

_ORDER: dict[Dialect, tuple[Dialect, ...]] = {
    "chat": ("responses", "messages"),
    "messages": ("responses", "chat"),
    "responses": ("chat", "messages"),
}


def bridged_to(dialect: Dialect, speaks: Callable[[Dialect], bool]) -> Dialect | None:
    """The dialect to say a request in where its own is not spoken; None where there is no bridge."""
    return next((other for other in _ORDER[dialect] if speaks(other)), None)


def neutral_request(dialect: Dialect, payload: Json) -> Request:
    """What a request asks. Raises `Invalid` where it leans on what only its own provider could know."""
    return _TO_REQUEST[dialect](payload)


def cross(
    client: Dialect, upstream: Dialect, payload: Json, receipt: str, *, thoughts: bool = True
) -> "Crossing":
    """The way of a request that is about to be sent. `thoughts`: what models thought before goes along.

    Raises:
        Invalid: no provider would take it, it leans on what only its own could know, or nothing is left of
            what is to be answered.
    """
    _CHECK[client](payload)
    crossing = Crossing(client, upstream, payload, receipt, thoughts=thoughts)
    if client != upstream and not crossing.asks:
        key = _SAID[client]
        if not payload.get(key):
            raise Invalid(f"`{key}` says nothing", hint="send a message of the user's in it")
        if not any(path.startswith(key) for path in crossing.dropped):
            raise Invalid(f"the last turn of `{key}` says nothing", hint="put text or an image in it")
        raise Invalid(
            f"nothing of `{key}` that is to be answered crosses to `{upstream}`",
            hint="documents, audio and files go over no bridge: say it in text, or name an upstream that "
            f"speaks `{client}`",
        )
    return crossing


class Crossing:
    """Belongs to one exchange. The same payload, receipt and bytes give the same answer again: a record needs
    to keep nothing but what was received.

    Raises:
        Invalid: the request leans on what only its own provider could know.

    Attributes:
        upstream: the dialect on the far side.
        dropped: the fields of the request that have no counterpart there.
    """

    def __init__(
        self, client: Dialect, upstream: Dialect, payload: Json, receipt: str, *, thoughts: bool = True
    ) -> None:
        self.upstream = upstream
        self._client = client
        request = _TO_REQUEST[client](payload)
        self._request = request if upstream == "messages" else fitted(request)
        self._names = Names(receipt, self._request.tools)
        unknown = self._request.chosen_in_vain
        if unknown:
            self._request = replace(self._request, choice=None)
        said = self._request if thoughts else unthinking(self._request)
        self._body, lost = _FROM_REQUEST[upstream](said)
        if said.messages != self._request.messages:
            lost.note("thinking")
        if unknown:
            lost.note("tool_choice")
        self.dropped = tuple(dict.fromkeys((*self._request.dropped, *lost.paths(_FIELDS[client]))))

    @property
    def asks(self) -> bool:
        """Whether the upstream gets what the client wants an answer to."""
        return bool(self._body[_SAID[self.upstream]]) and not self._request.unheard

    @property
    def thinks(self) -> bool:
        """Whether it tells an upstream that speaks chat what a model thought before."""
        said = mappings(self._body.get("messages"))
        return self.upstream == "chat" and any("reasoning_content" in message for message in said)

    @property
    def path(self) -> str:
        """Where the request goes, after `/v1`."""
        return codec_for(self.upstream).path

    @property
    def body(self) -> bytes:
        """The request in the upstream's dialect."""
        return dump(self._body)

    def headers(self, headers: Sequence[Header]) -> list[Header]:
        """The client's headers without those that speak of its own dialect; its key stands where the upstream
        looks for it, in case it goes there."""
        kept = [pair for pair in headers if not pair[0].startswith(("anthropic-", "openai-"))]
        named = dict(kept)
        if self.upstream == "messages":
            scheme, _, key = named.get("authorization", "").partition(" ")
            if scheme.lower() == "bearer" and not key.startswith(_LOGIN) and "x-api-key" not in named:
                return [("x-api-key", key) if pair[0] == "authorization" else pair for pair in kept]
        elif self._client == "messages" and "x-api-key" in named:
            key = f"Bearer {named['x-api-key']}"
            kept = [pair for pair in kept if pair[0] != "x-api-key"]
            return kept if "authorization" in named else [*kept, ("authorization", key)]
        return kept

    def translator(self) -> Translator:
        wanted = self._request.usage_wanted
        return Translator(self.upstream, self._client, self._names, usage_wanted=wanted)

    def answer(self, body: bytes) -> bytes:
        """A buffered answer in the client's dialect.

        Raises:
            UpstreamFailed: it cannot be read as the upstream's dialect.
        """
        response = load_object(body, exact=True)
        if response is None or not codec_for(self.upstream).answers(response):
            told = error_in(response)
            raise UpstreamFailed(
                f"the upstream answered with an error: {told}"
                if told
                else f"the upstream answered with no answer of the dialect `{self.upstream}`: {shown(body)}",
                hint="check base_url and api of the upstream",
            )
        return dump(_FROM_ANSWER[self._client](_TO_ANSWER[self.upstream](response), self._names))

    def error(self, body: bytes, status: int) -> bytes:
        """An upstream's error in the client's dialect."""
        said = said_in(body, otherwise=f"the upstream answered {status}")
        return codec_for(self._client).error_body(UpstreamFailed(said), status)

    @forgiving
    def parse(self, body: bytes, *, stream: bool) -> Parsed:
        """Read what the upstream sent as the client got it (see `Codec.parse`). An error stays as it is."""
        codec = codec_for(self._client)
        if stream:
            translator = self.translator()
            said = translator.feed(body) + translator.end()
            return self._completed(codec.parse(said, stream=True), translator.usage, body, stream=True)
        response = load_object(body, exact=True)
        if response is None or not codec_for(self.upstream).answers(response):
            return Parsed(response)
        usage = _TO_ANSWER[self.upstream](response).usage
        return self._completed(codec.parse(self.answer(body), stream=False), usage, body, stream=False)

    def _completed(self, parsed: Parsed, usage: Usage, body: bytes, *, stream: bool) -> Parsed:
        """With the usage as the upstream reported it, and the names that only the upstream knows."""
        own = codec_for(self.upstream).parse(body, stream=stream)
        counts: dict[str, Any] = {
            "input_tokens": None if usage.input is None else parsed.input_tokens,
            "output_tokens": None if usage.output is None else parsed.output_tokens,
            "cached_tokens": None if usage.cached is None else parsed.cached_tokens,
        }
        if parsed.input_tokens is None:  # a stream of which the client wanted no usage
            counts = {
                "input_tokens": usage.input,
                "output_tokens": usage.output,
                "cached_tokens": usage.cached,
            }
        aliases = strings(*parsed.aliases, *own.aliases)
        return replace(parsed, aliases=aliases, billed=own.billed, **counts)


def read_answer(
    dialect: Dialect, body: bytes, *, stream: bool, bridged: Dialect | None, request: bytes, receipt: str
) -> Parsed:
    """Read a record's answer in its client's dialect. `bridged` is the dialect of `body` where that is
    another one, `request` what the client sent."""
    if bridged is None:
        return codec_for(dialect).parse(body, stream=stream)
    crossing = Crossing(dialect, bridged, load_object(request, exact=True) or {}, receipt)
    return crossing.parse(body, stream=stream)
