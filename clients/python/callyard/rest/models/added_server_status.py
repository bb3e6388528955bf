from enum import StrEnum


class AddedServerStatus(StrEnum):
    CONNECTED = "connected"

    def __str__(self) -> str:
        return str(self.value)
