from enum import StrEnum


class WorkerServerTransport(StrEnum):
    HTTP = "http"
    OPENAPI = "openapi"
    SSE = "sse"
    STDIO = "stdio"
    TOOL_ENDPOINT = "tool_endpoint"

    def __str__(self) -> str:
        return str(self.value)
