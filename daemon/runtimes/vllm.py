"""A `vllm serve` that somebody else started, as an upstream."""

from daemon.runtimes.engine.refusals import restated
from daemon.runtimes.replayed import once
from daemon.runtimes.upstream import HttpUpstream
from daemon.wire.codec import codec_for
from reef.errors import Unauthorized
from reef.runtime import ProviderRequest, ProviderResponse, RuntimeKind

_WIDER = "or start vLLM with a larger --max-model-len"


class VllmUpstream(HttpUpstream):
    """Passes on what vLLM says but its refusals, which are told in the dialect that was asked: clients know
    then that a prompt is too long, that there is no such model, or that it is Reef's key which is wrong."""

    kind: RuntimeKind = "vllm"

    async def send(self, request: ProviderRequest) -> ProviderResponse:
        response = await super().send(request)
        if request.dialect is None:
            return response
        if response.status == 400 or (response.status == 404 and not request.counts):
            return await restated(response, request, self.model or self.name, wider=_WIDER)
        if response.status == 401 and not self._passthrough:
            await response.close()
            refused = f"{self.name} at {self.base_url} {self._wanted_key()}"
            self._trouble = (refused, "")
            told = codec_for(request.dialect).error_body(Unauthorized(refused), 401)
            return ProviderResponse(401, [("content-type", "application/json")], once(told))
        return response
