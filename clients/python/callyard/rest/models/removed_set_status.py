from enum import StrEnum


class RemovedSetStatus(StrEnum):
    REMOVED = "removed"

    def __str__(self) -> str:
        return str(self.value)
