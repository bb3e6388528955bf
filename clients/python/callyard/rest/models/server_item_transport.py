from enum import StrEnum


class ServerItemTransport(StrEnum):
    HTTP = "http"
    OPENAPI = "openapi"
    SSE = "sse"
    STDIO = "stdio"
    TOOL_ENDPOINT = "tool_endpoint"

    def __str__(self) -> str:
        return str(self.value)
