from ...enums import OpenEnum


class ServerPinsPin(OpenEnum):
    QUARANTINE = "quarantine"
    WARN = "warn"

    def __str__(self) -> str:
        return str(self.value)
