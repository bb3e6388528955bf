from ...enums import OpenEnum


class ServerEntryPin(OpenEnum):
    OFF = "off"
    QUARANTINE = "quarantine"
    WARN = "warn"

    def __str__(self) -> str:
        return str(self.value)
