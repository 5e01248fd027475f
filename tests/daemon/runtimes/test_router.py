"""Which upstream gets which model, under which name, and who stands in for it."""

from typing import Any

import pytest

from daemon.runtimes.router import Router
from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import UpstreamSection
from reef.errors import NotFound, Unsupported


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
    assert "gpt-*" in caught.value.hint


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
