"""xllamacpp in the child: llama.cpp's own server, which speaks all three dialects."""

from typing import Any

import xllamacpp


class Server:
    """See `child.Server`."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._server: Any = None  # it serves for as long as it is referenced

    def serve(self, key: str) -> str:
        config = self._config
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
        self._server = xllamacpp.Server(params)
        return str(self._server.listening_address)

    def end(self) -> None:
        """Nothing outlives the process."""
