from ...enums import OpenEnum


class WorkerServerTransport(OpenEnum):
    ATTACH = "attach"
    BUILTIN = "builtin"
    HTTP = "http"
    NATIVE = "native"
    OPENAPI = "openapi"
    SSE = "sse"
    STDIO = "stdio"
    TOOL_ENDPOINT = "tool_endpoint"
    WEBSOCKET = "websocket"

    def __str__(self) -> str:
        return str(self.value)
