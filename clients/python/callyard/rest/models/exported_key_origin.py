from enum import StrEnum


class ExportedKeyOrigin(StrEnum):
    API = "api"
    CONFIGURATION = "configuration"

    def __str__(self) -> str:
        return str(self.value)
