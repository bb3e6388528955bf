from enum import StrEnum


class RemovedServerStatus(StrEnum):
    DISCONNECTED = "disconnected"

    def __str__(self) -> str:
        return str(self.value)
