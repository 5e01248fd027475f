"""Which upstream gets which model, under which name, and who stands in for it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.runtimes.router import Router
from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import UpstreamSection
from reef.errors import NotFound, Unsupported
from reef.runtime import DIALECTS, Dialect


def router(*sections: dict[str, Any]) -> Router:
    made = [UpstreamSection.model_validate({"base_url": "http://h", **section}) for section in sections]
    return Router([HttpUpstream(section, {}) for section in made], made)


ANTHROPIC = {"name": "anthropic", "api": ("anthropic",), "models": ("claude-*",)}
OPENAI = {"name": "openai", "api": ("openai",), "models": ("gpt-*", "o?"), "fallback": ("local",)}
LOCAL = {"name": "local", "model": "qwen", "alias": {"claude-sonnet-4-5": "qwen", "tiny-*": "small"}}


@pytest.mark.parametrize(
    ("dialect", "model", "name"),
    [
        ("messages", "claude-opus-4", "anthropic"),
        ("chat", "claude-opus-4", "anthropic"),
        ("chat", "gpt-5", "openai"),
        ("messages", "gpt-5", "openai"),
        ("messages", "claude-sonnet-4-5", "local"),
        ("chat", "tiny-1", "local"),
        ("chat", "qwen", "local"),
        ("chat", "anything", "local"),
        ("chat", None, "local"),
    ],
)
def test_a_model_finds_its_upstream(dialect: Any, model: str | None, name: str) -> None:
    assert router(LOCAL, ANTHROPIC, OPENAI).pick(dialect, model).name == name


def test_of_two_that_name_it_the_first_has_it() -> None:
    assert router(ANTHROPIC, LOCAL).pick("messages", "claude-sonnet-4-5").name == "anthropic"


def test_a_named_upstream_wins() -> None:
    there = router(ANTHROPIC, OPENAI, LOCAL)
    assert there.pick("chat", "gpt-5", "local").name == "local"
    assert there.pick("chat", "gpt-5", "anthropic").name == "anthropic"


def test_a_model_that_none_takes_is_not_found() -> None:
    with pytest.raises(NotFound, match="no upstream takes the model `qwen`") as caught:
        router(ANTHROPIC, OPENAI).pick("chat", "qwen")
    assert caught.value.hint == "there is: gpt-*, o?, claude-*"


def test_names_and_aliases_are_there_too() -> None:
    with pytest.raises(NotFound) as caught:
        router(OPENAI | {"model": "gpt-5", "alias": {"fast": "gpt-5-mini"}}).pick("chat", "qwen")
    assert caught.value.hint == "there is: gpt-5, gpt-*, o?, fast"


def test_names_at_an_upstream() -> None:
    there = router(OPENAI, LOCAL)
    openai, local = there.runtimes
    names = [there.name_at(local, model) for model in ("claude-sonnet-4-5", "tiny-9", "x", None)]
    assert names == ["qwen", "small", "x", "qwen"]
    assert there.name_at(openai, "claude-sonnet-4-5") == "claude-sonnet-4-5"


def test_who_stands_in() -> None:
    there = router(OPENAI, LOCAL)
    assert [runtime.name for runtime in there.route("chat", "gpt-5")] == ["openai", "local"]
    assert [runtime.name for runtime in there.route("chat", "qwen")] == ["local"]


@pytest.mark.parametrize(
    ("sections", "asked", "upstream", "found"),
    [
        ((LOCAL,), "gpt-9", None, ("local", "gpt-9")),
        ((LOCAL,), "claude-sonnet-4-5", None, ("local", "qwen")),
        ((LOCAL,), None, None, ("local", "qwen")),
        ((ANTHROPIC | {"auth": "passthrough"}, LOCAL), "claude-opus-4", None, ("local", "qwen")),
        ((OPENAI, LOCAL), "gpt-5", None, ("openai", "gpt-5")),
        ((OPENAI, LOCAL), "gpt-5", "local", ("local", "qwen")),
        ((OPENAI | {"model": "gpt-5-mini"}, LOCAL), "other", None, ("openai", "gpt-5-mini")),
    ],
)
def test_whom_reef_itself_asks(
    sections: tuple[dict[str, Any], ...], asked: str | None, upstream: str | None, found: tuple[str, str]
) -> None:
    runtime, model = router(*sections).own(asked, upstream)
    assert (runtime.name, model) == found


def test_reef_never_asks_with_somebody_elses_key() -> None:
    own = LOCAL | {"auth": "passthrough"}
    for upstream in (None, "local"):
        with pytest.raises(Unsupported):
            router(own).own("qwen", upstream)


class Listing(HttpUpstream):
    """Lists these models, whatever its address."""

    lists: Sequence[str] = ()

    async def models(self) -> Sequence[str]:
        return self.lists


def offering(*given: tuple[dict[str, Any], Sequence[str]]) -> Router:
    made: list[Listing] = []
    sections: list[UpstreamSection] = []
    for number, (section, lists) in enumerate(given):
        fields = {"name": f"u{number}", "base_url": "http://h"} | section
        sections.append(UpstreamSection.model_validate(fields))
        made.append(Listing(sections[-1], {}))
        made[-1].lists = lists
    return Router(made, sections)


def told(there: Router, dialect: Dialect, upstream: str | None = None, wanted: str | None = None) -> Any:
    found = asyncio.run(there.models([dialect], upstream, wanted=wanted))
    return [(name, runtime.name) for runtime, name in found]


def test_an_upstream_offers_no_more_than_its_patterns_take() -> None:
    there = offering(
        ({"models": ("gpt-*", "exact"), "alias": {"fast": "gpt-5", "big-*": "o"}}, ["gpt-5", "azure"])
    )
    assert told(there, "chat") == [("gpt-5", "u0"), ("exact", "u0"), ("fast", "u0")]
    assert told(there, "chat", wanted="azure") == told(there, "chat")
    assert told(there, "chat", wanted="big-1")[-1] == ("big-1", "u0")


def test_a_model_belongs_to_who_is_asked_for_it() -> None:
    open_ones = offering(({}, ["a"]), ({}, ["a", "b"]))
    assert told(open_ones, "chat") == [("a", "u0")], "a request for b would go to the first, which has none"
    assert told(open_ones, "chat", "u1") == [("a", "u1"), ("b", "u1")]
    by_dialect = offering(({"api": ("openai",)}, ["gpt"]), ({"api": ("anthropic",)}, ["claude"]))
    assert told(by_dialect, "chat") == [("gpt", "u0")]
    assert told(by_dialect, "messages") == [("claude", "u1")]
    claimed = offering(({"models": ("b*",)}, []), ({}, ["a", "b"]))
    assert told(claimed, "chat") == [("a", "u1"), ("b", "u0")]


NAMES = ["a", "b", "ab", "c"]
SECTIONS = st.fixed_dictionaries(
    {},
    optional={
        "models": st.lists(st.sampled_from([*NAMES, "a*", "*b"]), max_size=2).map(tuple),
        "alias": st.dictionaries(st.sampled_from([*NAMES, "?b"]), st.sampled_from(NAMES), max_size=2),
        "api": st.sampled_from([("openai",), ("anthropic",), ("chat",)]),
        "model": st.sampled_from(NAMES),
    },
)


@given(
    st.lists(st.tuples(SECTIONS, st.lists(st.sampled_from(NAMES), max_size=3)), min_size=1, max_size=3),
    st.sampled_from(DIALECTS),
    st.none() | st.just("u0"),
)
def test_what_is_told_is_what_a_request_is_routed(
    given_: list[tuple[dict[str, Any], list[str]]], dialect: Dialect, upstream: str | None
) -> None:
    there = offering(*given_)
    for wanted in NAMES:
        found = dict(told(there, dialect, upstream, wanted))
        for name, runtime in found.items():
            assert there.pick(dialect, name, upstream).name == runtime
        try:
            asked = there.pick(dialect, wanted, upstream)
        except NotFound:
            assert wanted not in found
            continue
        assert isinstance(asked, Listing)
        if not asked.lists or wanted in asked.lists:
            assert found[wanted] == asked.name
