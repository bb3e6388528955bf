from enum import StrEnum


class ServerBoxIsolation(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    CONTAINER = "container"

    def __str__(self) -> str:
        return str(self.value)
