from ...enums import OpenEnum


class ServerEntryType(OpenEnum):
    HTTP = "http"
    SSE = "sse"
    STDIO = "stdio"
    WEBSOCKET = "websocket"

    def __str__(self) -> str:
        return str(self.value)
