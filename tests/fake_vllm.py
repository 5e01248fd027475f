"""Stands for the program `vllm` where it is not installed, as version 0.32 behaved.

It takes the words and the variable that vLLM documents, answers `/health` once it has loaded, wants its key
below `/v1`, and starts a worker process as vLLM does. It loads until the file `$FAKE_VLLM_GO` is there, and
fails to load a model named `broken`. What it was started with goes to the file `$FAKE_VLLM_TOLD`, its
environment too; the last request's body beside it, with the ending `.asked`.

It refuses as vLLM does: texts with the words `too long`, `endless` (not even counted) or `full` (no token
left for an answer), pictures, tools without a parser, an answer longer than the window, another model, and a
body that is not called JSON.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_WINDOW = 4096
_LONGEST = f"This model's maximum context length is {_WINDOW} tokens. However, your prompt contains "
_LESS = "Please reduce the length of the input prompt."
_PARSER = "requires --tool-call-parser to be set"
_BROKEN = """\
(Worker pid=7) ERROR 11-30 16:30:25 [multiproc_executor.py:953] RuntimeError: Cannot find any weights
(EngineCore pid=6) ERROR 11-30 16:30:29 [core.py:1510] Exception: WorkerProc initialization failed due to an \
exception in a background process. See stack trace for root cause.
Traceback (most recent call last):
  File "vllm/v1/engine/utils.py", line 1431, in wait_for_engine_startup
    raise RuntimeError(
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    name = ""
    parser = False
    asked = Path()

    def do_GET(self) -> None:
        if self.path != "/health" and self._strange():
            return
        self._answer(200, {"data": [{"id": self.name}]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        asked = json.loads(body)
        self.asked.write_bytes(body)
        if self._strange():
            return
        if self.headers.get("content-type") != "application/json":
            self._refuse(400, "Unsupported Media Type: Only 'application/json' is allowed", "Bad Request")
            return
        if self.path.endswith("/count_tokens"):  # as older ones
            self._answer(404, {"detail": "Not Found"})
        elif asked.get("model") != self.name:
            said = f"The model `{asked.get('model')}` does not exist. Valid aliases: {self.name}."
            self._refuse(404, said, "NotFoundError")
        elif refused := self._refused(asked):
            self._refuse(400, refused, "BadRequestError")
        elif self.path == "/v1/messages":
            said = {"type": "message", "id": "m", "role": "assistant", "model": asked["model"]}
            said |= {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
            self._answer(200, said | {"usage": {"input_tokens": 1, "output_tokens": 1}})
        elif self.path == "/v1/responses":
            part = {"type": "output_text", "text": "hi", "annotations": []}
            item = {"type": "message", "id": "i", "role": "assistant", "content": [part]}
            usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
            said = {"id": "r", "object": "response", "status": "completed", "output": [item]}
            self._answer(200, said | {"model": asked["model"], "usage": usage})
        else:
            shape = "response_format" in asked
            text = '{\n"city":  "Paris"\n\n}' if shape else "hi"
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            self._answer(200, {"id": "c", "model": asked["model"], "choices": [choice], "usage": usage})

    def _strange(self) -> bool:
        if self.headers.get("authorization") == f"Bearer {os.environ['VLLM_API_KEY']}":
            return False
        self._answer(401, {"error": "Unauthorized"})
        return True

    def _refused(self, asked: dict[str, Any]) -> str | None:
        text = json.dumps(asked)
        wanted = asked.get("max_tokens", asked.get("max_output_tokens", 16))
        if wanted > _WINDOW:
            return (
                f"max_tokens={wanted} cannot be greater than max_model_len={_WINDOW}. Please request fewer."
            )
        if "endless" in text:
            bound = f"the upper bound for {_WINDOW} input tokens"
            return f"{_LONGEST}200148 characters (more than 82944, {bound}). {_LESS}"
        if "too long" in text:
            return f"{_LONGEST}5000 input tokens, which exceeds this limit even without any output. {_LESS}"
        if "full" in text or wanted == 0:
            if self.path == "/v1/responses":
                return f"The engine prompt length {_WINDOW} exceeds the max_model_len {_WINDOW}. {_LESS}"
            return "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)"
        if "image_url" in text or '"image"' in text:
            return f"{self.name} is not a multimodal model"
        choice = asked.get("tool_choice", "auto")
        if asked.get("tools") and not self.parser and self.path != "/v1/responses" and choice != "none":
            return f'"auto" tool choice {_PARSER}' if choice == "auto" else f"tool_choice={choice} {_PARSER}"
        return None

    def _refuse(self, status: int, message: str, kind: str) -> None:
        if self.path == "/v1/messages":
            self._answer(status, {"type": "error", "error": {"type": kind, "message": message}})
        else:
            told = {"message": message, "type": kind, "param": None, "code": status}
            self._answer(status, {"error": told})

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(prog="vllm")
    parser.add_argument("verb", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--enable-auto-tool-choice", action="store_true")
    parser.add_argument("--tool-call-parser")
    asked = parser.parse_args()
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "vllm-worker"])
    told = vars(asked) | {"pid": os.getpid(), "worker": worker.pid, "environ": dict(os.environ)}
    file = Path(os.environ["FAKE_VLLM_TOLD"])
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(told))
    unfinished.replace(file)
    if asked.model.endswith("broken"):
        worker.kill()
        sys.exit(_BROKEN)
    while (go := os.environ.get("FAKE_VLLM_GO")) and not Path(go).exists():
        time.sleep(0.01)
    Handler.name = asked.served_model_name
    Handler.parser = bool(asked.enable_auto_tool_choice and asked.tool_call_parser)
    Handler.asked = file.with_suffix(".asked")
    sys.stderr.write("its last words have no end of line")
    sys.stderr.flush()
    ThreadingHTTPServer((asked.host, asked.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
