from enum import StrEnum


class SetDetailOrigin(StrEnum):
    API = "api"
    CONFIGURATION = "configuration"

    def __str__(self) -> str:
        return str(self.value)
