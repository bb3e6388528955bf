from enum import StrEnum


class ServerEntryType(StrEnum):
    HTTP = "http"
    SSE = "sse"
    STDIO = "stdio"
    WEBSOCKET = "websocket"

    def __str__(self) -> str:
        return str(self.value)
