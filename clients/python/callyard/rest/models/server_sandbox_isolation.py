from enum import StrEnum


class ServerSandboxIsolation(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    CONTAINER = "container"

    def __str__(self) -> str:
        return str(self.value)
