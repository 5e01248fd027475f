"""Who takes part: the upstream itself, nginx in between, the floor, Reef (and two variants of it), LiteLLM's
proxy."""

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from reef.errors import ReefError
from tests.e2e.running import TOKEN, Daemon, clean_environment, free_port

LITELLM = Path(__file__).parents[1] / ".cache" / "litellm"
_START_S = 90.0
_ANSWER = (
    '{"id":"chatcmpl-bench","object":"chat.completion","created":1,"model":"b","choices":[{"index":0,'
    '"message":{"role":"assistant","content":"A short answer, as agents get them all day."},'
    '"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}'
)
_NGINX = """
user root; worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000; client_max_body_size 64m; client_body_buffer_size 2m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  {http}
}}
"""
_UPSTREAM = (
    "server {{ listen 127.0.0.1:{port} backlog=1024; location / {{ default_type application/json; "
    "return 200 '{answer}'; }} }}"
)
_PASS = """
upstream buffered {{ server 127.0.0.1:{buffered}; keepalive 128; keepalive_requests 1000000; }}
upstream streamed {{ server 127.0.0.1:{streamed}; keepalive 128; keepalive_requests 1000000; }}
server {{
  listen 127.0.0.1:{port} backlog=1024; proxy_http_version 1.1; proxy_set_header Connection "";
  proxy_buffering off;
  location /b/ {{ proxy_pass http://buffered/; }}
  location /s/ {{ proxy_pass http://streamed/; }}
}}
"""
_REEF = """
[[upstream]]
name = "buffered"
base_url = "http://127.0.0.1:{buffered}/v1"
models = ["b"]

[[upstream]]
name = "streamed"
base_url = "http://127.0.0.1:{streamed}/v1"
models = ["s"]
"""
_LITELLM = """
model_list:
  - model_name: b
    litellm_params: {{model: openai/b, api_base: "http://127.0.0.1:{buffered}/v1", api_key: none}}
  - model_name: s
    litellm_params: {{model: openai/s, api_base: "http://127.0.0.1:{streamed}/v1", api_key: none}}
"""


@dataclass(frozen=True)
class Contender:
    """`buffered` and `streamed` are the addresses of chat completions; who has no second takes no part in
    streams. `pid` of what stands in between."""

    name: str
    buffered: str
    streamed: str | None
    pid: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    start_s: float | None = None


class Variant(Daemon):
    """A daemon changed in one way (see `bench.proxy.variant`)."""

    def __init__(self, folder: Path, variant: str, *words: str) -> None:
        super().__init__(folder, *words)
        self.program = ("-m", "bench.proxy.variant", variant)


def require_tools() -> None:
    """Raises ReefError when nginx or wrk is not installed."""
    if missing := [name for name in ("nginx", "wrk") if _which(name) is None]:
        raise ReefError(f"missing: {', '.join(missing)}", hint="sudo apt-get install nginx-light wrk")


@contextmanager
def upstreams(folder: Path) -> Iterator[tuple[int, int]]:
    """The ports of an upstream for buffered answers (nginx) and one for streams."""
    buffered, streamed = free_port(), free_port()
    with ExitStack() as stack:
        http = _UPSTREAM.format(port=buffered, answer=_ANSWER)
        stack.enter_context(_nginx(folder / "upstream", http, buffered))
        command = [sys.executable, "-m", "bench.proxy.streaming_upstream", str(streamed)]
        environ = clean_environment(folder)
        stack.enter_context(_process(command, streamed, environ, folder / "streaming.log"))
        yield buffered, streamed


def direct(ports: tuple[int, int]) -> Contender:
    return Contender("direct", *(f"http://127.0.0.1:{port}/v1/chat/completions" for port in ports))


@contextmanager
def nginx(folder: Path, ports: tuple[int, int]) -> Iterator[Contender]:
    port = free_port()
    http = _PASS.format(port=port, buffered=ports[0], streamed=ports[1])
    with _nginx(folder / "pass", http, port) as process:
        addresses = (f"http://127.0.0.1:{port}/{kind}/v1/chat/completions" for kind in "bs")
        yield Contender("nginx", *addresses, process.pid)


@contextmanager
def floor(folder: Path, ports: tuple[int, int]) -> Iterator[Contender]:
    """The least that a recording proxy costs in Python (see `bench.proxy.floor`)."""
    folder.mkdir(parents=True)
    port = free_port()
    words = (str(port), str(ports[0]), str(folder / "floor.db"))
    command = [sys.executable, "-m", "bench.proxy.floor", *words]
    with _process(command, port, clean_environment(folder), folder / "log") as process:
        yield Contender("floor", f"http://127.0.0.1:{port}/v1/chat/completions", None, process.pid)


@contextmanager
def reef(folder: Path, ports: tuple[int, int], name: str, variant: str | None = None) -> Iterator[Contender]:
    """A daemon with its home in `folder`."""
    folder.mkdir(parents=True)
    config = folder / "reef.toml"
    config.write_text(_REEF.format(buffered=ports[0], streamed=ports[1]))
    words = ("-c", str(config))
    daemon = Variant(folder, variant, *words) if variant else Daemon(folder, *words)
    began = time.perf_counter()
    daemon.start()
    _wait(f"{daemon.url}/healthz", daemon.log)
    start_s = time.perf_counter() - began
    try:
        address = f"{daemon.url}/v1/chat/completions"
        assert daemon.process is not None
        headers = {"authorization": f"Bearer {TOKEN}"}
        yield Contender(name, address, address, daemon.process.pid, headers, start_s)
    finally:
        daemon.kill()


@contextmanager
def litellm(folder: Path, ports: tuple[int, int]) -> Iterator[Contender]:
    """LiteLLM's proxy, one worker. Raises ReefError when it cannot be installed or started."""
    program = _installed()
    folder.mkdir(parents=True)
    config = folder / "config.yaml"
    config.write_text(_LITELLM.format(buffered=ports[0], streamed=ports[1]))
    port = free_port()
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environ = clean_environment(
        folder,
        HOME=str(folder),
        LITELLM_MODE="PRODUCTION",
        LITELLM_LOG="ERROR",
        LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY="true",  # no key is less work for it
    )
    log = folder / "litellm.log"
    began = time.perf_counter()
    with _process([*command, "--num_workers", "1"], None, environ, log) as process:
        _wait(f"http://127.0.0.1:{port}/health/liveliness", log, process)
        address = f"http://127.0.0.1:{port}/v1/chat/completions"
        yield Contender("litellm", address, address, process.pid, {}, time.perf_counter() - began)


def _installed() -> Path:
    """LiteLLM in a virtual environment of its own, which is kept."""
    program = LITELLM / "bin" / "litellm"
    if not program.exists():
        print(f"installing litellm[proxy] in {LITELLM} (some minutes, once)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(LITELLM)], check=True)
        pip = [str(LITELLM / "bin" / "pip"), "install", "--quiet", "litellm[proxy]"]
        done = subprocess.run(pip, check=False, capture_output=True, text=True, timeout=900)
        if done.returncode:
            shutil.rmtree(LITELLM)
            raise ReefError(f"litellm[proxy] does not install: {done.stderr.strip()[-300:]}", hint="see pip")
    return program


def _which(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def _nginx(folder: Path, http: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir(parents=True)
    config = folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder, http=http))
    command = [_which("nginx") or "nginx", "-p", str(folder), "-c", str(config)]
    with _process(command, port, dict(os.environ), folder / "log") as process:
        yield process


@contextmanager
def _process(
    command: list[str], port: int | None, environ: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=log.parent
        )
    try:
        if port is not None:
            _wait(f"http://127.0.0.1:{port}/", log, process)
        yield process
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait(url: str, log: Path, process: subprocess.Popen[bytes] | None = None) -> None:
    """Until there is an answer, any answer."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and (process is None or process.poll() is None):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
    raise ReefError(f"{url} does not answer", hint=f"its log: {log.read_text(errors='replace')[-500:]}")
