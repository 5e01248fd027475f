"""Stands for the program `vllm` where no GPU is.

It takes the words and the variable that vLLM documents, answers `/health` once it has loaded, wants its key,
and starts a worker process as vLLM does. It loads until the file `$FAKE_VLLM_GO` is there, and fails to load
a model named `broken`. What it was started with goes to the file `$FAKE_VLLM_TOLD`, its
environment too.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOO_LONG = "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens."


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    name = ""

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": self.name}]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers.get("authorization") != f"Bearer {os.environ['VLLM_API_KEY']}":
            self._answer(401, {"error": "Unauthorized"})
        elif "too long" in json.dumps(asked):
            self._answer(400, {"error": {"message": TOO_LONG, "type": "BadRequestError", "code": 400}})
        elif self.path == "/v1/messages":
            said = {"type": "message", "id": "m", "role": "assistant", "model": asked["model"]}
            said |= {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
            self._answer(200, said | {"usage": {"input_tokens": 1, "output_tokens": 1}})
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            self._answer(200, {"id": "c", "model": asked["model"], "choices": [choice], "usage": usage})

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
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--enable-auto-tool-choice", action="store_true")
    asked = parser.parse_args()
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "vllm-worker"])
    told = vars(asked) | {"pid": os.getpid(), "worker": worker.pid, "environ": dict(os.environ)}
    file = Path(os.environ["FAKE_VLLM_TOLD"])
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(told))
    unfinished.replace(file)
    if asked.model.endswith("broken"):
        worker.kill()
        sys.exit("ValueError: no such model")
    while (go := os.environ.get("FAKE_VLLM_GO")) and not Path(go).exists():
        time.sleep(0.01)
    Handler.name = asked.served_model_name
    ThreadingHTTPServer((asked.host, asked.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
