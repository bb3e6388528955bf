from enum import StrEnum


class RestartedServerStatus(StrEnum):
    RESTARTING = "restarting"

    def __str__(self) -> str:
        return str(self.value)
