"""A `vllm serve` that somebody else started, as an upstream."""

from daemon.runtimes.engine.refusals import restated
from daemon.runtimes.upstream import HttpUpstream
from reef.runtime import ProviderRequest, ProviderResponse, RuntimeKind


class VllmUpstream(HttpUpstream):
    """Passes on what vLLM says but its refusals, which are told in the dialect that was asked: clients know
    then that a prompt is too long."""

    kind: RuntimeKind = "vllm"

    async def send(self, request: ProviderRequest) -> ProviderResponse:
        response = await super().send(request)
        if response.status == 400 and request.dialect is not None:
            return await restated(response, request.dialect, self.model or self.name)
        return response
