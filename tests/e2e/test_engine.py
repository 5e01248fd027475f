"""A model on this machine, served by a real daemon to the SDKs of both providers."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import anthropic
import httpx
import openai
import pytest

from tests.e2e.running import TOKEN, Daemon, running, wait_for
from tests.processes import descendants_of, is_running, with_words
from tests.tiny_gguf import tiny_model

SLOW_START = """
import os, sys, time
if any("engine.child" in word for word in sys.orig_argv):
    while not os.path.exists(os.environ["LET_IT_LOAD"]):
        time.sleep(0.01)
"""


def engine_state(daemon: Daemon) -> str:
    upstreams = daemon.get("/reef/status")["serving"]["upstreams"]
    return next(one["state"] for one in upstreams if one["kind"] == "engine")


def ready(daemon: Daemon) -> None:
    wait_for(lambda: engine_state(daemon) == "ready" or None, "the engine")


def children_of(daemon: Daemon) -> list[int]:
    assert daemon.process is not None
    mine = descendants_of(daemon.process.pid)
    return [pid for pid in with_words("engine.child") if pid in mine]


def child_of(daemon: Daemon) -> int:
    return children_of(daemon)[0]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    words = ("--reef.model_path", str(tiny_model()), "--engine.context", "1024")
    with running(tmp_path_factory.mktemp("engine"), *words) as found:
        ready(found)
        yield found


def record(daemon: Daemon, receipt: str) -> tuple[str, str, str, bool]:
    row = daemon.get(f"/reef/records/{receipt}")
    assert row["usage"]["output_tokens"]
    return row["status"], row["dialect"], row["upstream"]["name"], row["stream"]


MESSAGES = [{"role": "user", "content": "hello"}]


def test_the_openai_sdk(daemon: Daemon) -> None:
    with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=TOKEN, max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["tiny"]
        raw = client.chat.completions.with_raw_response.create(model="tiny", messages=MESSAGES, max_tokens=4)
        assert raw.parse().usage.completion_tokens == 4
        assert record(daemon, raw.headers["x-reef-agent-record-id"]) == ("complete", "chat", "engine", False)

        chunks = list(
            client.chat.completions.create(
                model="tiny",
                messages=MESSAGES,
                max_tokens=4,
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        assert chunks[-1].choices == []
        receipt = chunks[-1].model_extra["reef"]["agent_record_id"]
        assert record(daemon, receipt) == ("complete", "chat", "engine", True)

        answer = client.responses.create(model="tiny", input="hello", max_output_tokens=4)
        assert answer.output[0].type == "message"
        events = list(client.responses.create(model="tiny", input="hello", max_output_tokens=4, stream=True))
        assert events[-1].type == "response.incomplete", "it was cut off at four tokens"
        receipt = events[-1].model_extra["reef"]["agent_record_id"]
        assert record(daemon, receipt) == ("complete", "responses", "engine", True)


def test_the_anthropic_sdk(daemon: Daemon) -> None:
    with anthropic.Anthropic(base_url=daemon.url, api_key=TOKEN, max_retries=0) as client:
        raw = client.messages.with_raw_response.create(model="tiny", messages=MESSAGES, max_tokens=4)
        assert raw.parse().usage.output_tokens == 4
        receipt = raw.headers["x-reef-agent-record-id"]
        assert record(daemon, receipt) == ("complete", "messages", "engine", False)

        with client.messages.stream(model="tiny", messages=MESSAGES, max_tokens=4) as stream:
            receipt = stream.response.headers["x-reef-agent-record-id"]
            assert stream.get_final_message().usage.output_tokens > 0
        assert record(daemon, receipt) == ("complete", "messages", "engine", True)
        assert client.messages.count_tokens(model="tiny", messages=MESSAGES).input_tokens > 1


def test_an_overlong_prompt_is_the_sdks_usual_error(daemon: Daemon) -> None:
    long = [{"role": "user", "content": "hello " * 1024}]
    with (
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=TOKEN, max_retries=0) as client,
        pytest.raises(openai.BadRequestError) as caught,
    ):
        client.chat.completions.create(model="tiny", messages=long)
    assert caught.value.code == "context_length_exceeded"
    assert "reef models add" in caught.value.message
    with (
        anthropic.Anthropic(base_url=daemon.url, api_key=TOKEN, max_retries=0) as client,
        pytest.raises(anthropic.BadRequestError, match=r"prompt is too long.*reef models add"),
    ):
        client.messages.create(model="tiny", messages=long, max_tokens=4)


@pytest.mark.parametrize("stream", [False, True])
def test_an_image_is_refused_for_good_and_recorded(daemon: Daemon, stream: bool) -> None:
    image = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    said = [{"role": "user", "content": [{"type": "image", "source": image}]}]
    with (
        anthropic.Anthropic(base_url=daemon.url, api_key=TOKEN) as client,
        pytest.raises(anthropic.BadRequestError, match=r"`tiny` reads no images.*reef models add") as caught,
    ):
        client.messages.create(model="tiny", messages=said, max_tokens=4, stream=stream)
    answer = caught.value.response
    assert answer.request.headers["x-stainless-retry-count"] == "0"
    row = daemon.get(f"/reef/records/{answer.headers['x-reef-agent-record-id']}")
    assert row["status"] == "failed"


def test_it_makes_no_embeddings_and_says_who_might(daemon: Daemon) -> None:
    with (
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=TOKEN) as client,
        pytest.raises(
            openai.APIStatusError, match=r"`?tiny makes no embeddings .*\[\[upstream\]\]"
        ) as caught,
    ):
        client.embeddings.create(model="tiny", input="hi")
    assert caught.value.status_code == 501
    assert caught.value.response.headers["x-should-retry"] == "false"
    retried = caught.value.response.request.headers["x-stainless-retry-count"]
    assert retried == "0", "it is no use to ask again"


def test_while_it_loads_clients_are_told_when_to_come_back(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    signal_file = tmp_path / "go"
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    environ = {"PYTHONPATH": path, "LET_IT_LOAD": str(signal_file)}
    with running(tmp_path, "--reef.model_path", str(tiny_model()), environ=environ) as daemon:
        assert engine_state(daemon) == "loading"
        chat = post(daemon, "/v1/chat/completions")
        messages = post(daemon, "/v1/messages")
        for answer in (chat, messages):
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) >= 1
            assert "is loading" in answer.json()["error"]["message"]
        assert messages.json()["type"] == "error"
        assert messages.json()["error"]["type"] == "overloaded_error"
        assert chat.json()["error"]["type"] == "server_error"
        signal_file.touch()
        # The SDK's own retries are all that a client needs.
        with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=TOKEN, max_retries=5) as client:
            client.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=2)


def test_a_crash_costs_one_child_and_a_killed_daemon_leaves_none(tmp_path: Path) -> None:
    with running(tmp_path, "--reef.model_path", str(tiny_model())) as daemon:
        ready(daemon)
        first = child_of(daemon)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: engine_state(daemon) == "down" or None, "the crash")
        down = post(daemon, "/v1/messages")
        assert down.status_code == 503
        assert "retry-after" in down.headers
        ready(daemon)
        assert post(daemon, "/v1/messages").status_code == 200
        second = child_of(daemon)
        daemon.kill()
        wait_for(lambda: not is_running(second) or None, "the end of the child", seconds=5)


def test_an_idle_model_leaves_the_memory_and_comes_back(tmp_path: Path) -> None:
    words = ("--reef.model_path", str(tiny_model()), "--engine.idle_unload_s", "0.3")
    with running(tmp_path, *words) as daemon:
        ready(daemon)
        assert post(daemon, "/v1/messages").status_code == 200
        wait_for(lambda: not children_of(daemon) or None, "the unloading")
        assert engine_state(daemon) == "ready"
        asleep = post(daemon, "/v1/messages")
        assert asleep.status_code == 503
        assert int(asleep.headers["retry-after"]) >= 1
        # The SDK's own retries are all that a client needs.
        with anthropic.Anthropic(base_url=daemon.url, api_key=TOKEN, max_retries=5) as client:
            client.messages.create(model="tiny", messages=MESSAGES, max_tokens=2)


def test_the_other_engine(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp", reason="the engine llama-cpp-python is not installed")
    with running(tmp_path, "--engine", "llama-cpp-python", "--reef.model_path", str(tiny_model())) as daemon:
        ready(daemon)
        for path in ("/v1/chat/completions", "/v1/messages"):
            assert post(daemon, path).status_code == 200


def test_an_engine_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="llamacpp"):
        Daemon(tmp_path, "--engine", "xlamacpp", "--reef.model_path", str(tiny_model())).start()


def test_a_missing_model_stops_the_start_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="reef models add smollm2"):
        Daemon(tmp_path, "--reef.model_path", "nowhere.gguf").start()


def post(daemon: Daemon, path: str) -> httpx.Response:
    with daemon.client() as client:
        return client.post(path, json={"model": "tiny", "messages": MESSAGES, "max_tokens": 2})


def test_what_the_engine_has_no_word_for_is_listed(daemon: Daemon) -> None:
    """A stream of messages goes by way of chat completions."""
    system = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    asked = {"model": "tiny", "max_tokens": 4, "system": system, "messages": MESSAGES, "top_k": 5}
    asked |= {"metadata": {"user_id": "u"}, "stream": True}
    with daemon.client() as client:
        answer = client.post("/v1/messages", json=asked)
        receipt = answer.headers["x-reef-agent-record-id"]
    assert daemon.get(f"/reef/records/{receipt}")["dropped"] == ["metadata", "system[].cache_control"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_document_is_listed_or_refused(daemon: Daemon, stream: bool) -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "It rains."}
    document = {"type": "document", "source": source}
    for more, status in (([{"type": "text", "text": "hello"}], 200), ([], 400)):
        said = [{"role": "user", "content": [document, *more]}]
        asked = {"model": "tiny", "max_tokens": 4, "messages": said, "stream": stream}
        with daemon.client() as client:
            answer = client.post("/v1/messages", json=asked)
        assert answer.status_code == status
        if more:
            record = daemon.get(f"/reef/records/{answer.headers['x-reef-agent-record-id']}")
            assert record["dropped"] == ["messages[].content[document]"]
        else:
            assert "documents, audio and files go over no bridge" in answer.text


def test_what_no_grammar_holds_is_listed(daemon: Daemon) -> None:
    kind = {"type": "string", "enum": ["a", "b"], "not": {"const": "a"}}
    tool = {
        "name": "t",
        "input_schema": {"type": "object", "properties": {"kind": kind}, "required": ["kind"]},
    }
    with anthropic.Anthropic(base_url=daemon.url, api_key=TOKEN, max_retries=0) as client:
        raw = client.messages.with_raw_response.create(
            model="tiny", messages=MESSAGES, max_tokens=60, tools=[tool], tool_choice={"type": "any"}
        )
    assert raw.parse().stop_reason == "tool_use"
    record = daemon.get(f"/reef/records/{raw.headers['x-reef-agent-record-id']}")
    assert record["dropped"] == ["tools[].input_schema.properties.kind.not"]


def test_a_schema_of_nothing_is_a_refusal(daemon: Daemon) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with (
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=TOKEN) as client,
        pytest.raises(openai.BadRequestError, match="no grammar can be made of the JSON schema"),
    ):
        client.chat.completions.create(model="tiny", messages=MESSAGES, response_format=wanted)
