from ...enums import OpenEnum


class ServerItemPin(OpenEnum):
    QUARANTINE = "quarantine"
    WARN = "warn"

    def __str__(self) -> str:
        return str(self.value)
