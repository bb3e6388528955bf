from enum import StrEnum


class ServerPinsPin(StrEnum):
    QUARANTINE = "quarantine"
    WARN = "warn"

    def __str__(self) -> str:
        return str(self.value)
