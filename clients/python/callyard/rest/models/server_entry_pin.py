from enum import StrEnum


class ServerEntryPin(StrEnum):
    OFF = "off"
    QUARANTINE = "quarantine"
    WARN = "warn"

    def __str__(self) -> str:
        return str(self.value)
