from enum import StrEnum


class ServerItemPin(StrEnum):
    QUARANTINE = "quarantine"
    WARN = "warn"

    def __str__(self) -> str:
        return str(self.value)
