from enum import StrEnum


class ListToolsInclude(StrEnum):
    OFFLINE = "offline"

    def __str__(self) -> str:
        return str(self.value)
