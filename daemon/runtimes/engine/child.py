"""The child process: `python -m daemon.runtimes.engine.child`.

Reads one JSON line on stdin (`model_path, name, context, parallel, threads`), takes its key from
`REEF_ENGINE_KEY`, answers one JSON line (`{"url", "boot"}` or `{"error"}`) on stdout, and ends when
stdin closes: a daemon that was killed leaves no orphan.
"""

import json
import os
import sys
import time
from typing import Any, NoReturn

KEY_VARIABLE = "REEF_ENGINE_KEY"


def main() -> NoReturn:
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the engine's own chatter goes to the log
    config = json.loads(sys.stdin.readline())
    started = time.monotonic()
    try:
        server = serve(config, os.environ.pop(KEY_VARIABLE))
    except Exception as error:
        print(json.dumps({"error": str(error) or repr(error)}), file=answer, flush=True)
        os._exit(1)
    boot = round(time.monotonic() - started, 3)
    print(json.dumps({"url": server.listening_address, "boot": boot}), file=answer, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)  # no destructor: it would wait for requests nobody listens to


def serve(config: dict[str, Any], key: str) -> Any:
    """Load the model and open the port. The returned server must stay referenced."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = config["model_path"]
    params.model_alias = {config["name"]}
    params.n_ctx = config["context"]
    params.n_parallel = config["parallel"]
    params.kv_unified = True  # slots share the whole context instead of a part each
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = config["threads"]
    params.cache_ram_mib = 0
    params.warmup = False
    params.verbosity = 1
    params.api_keys = [key]
    params.ui = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
