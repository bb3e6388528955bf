from enum import StrEnum


class SetItemOrigin(StrEnum):
    API = "api"
    CONFIGURATION = "configuration"

    def __str__(self) -> str:
        return str(self.value)
