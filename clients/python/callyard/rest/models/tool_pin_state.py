from enum import StrEnum


class ToolPinState(StrEnum):
    ACCEPTED = "accepted"
    CHANGED = "changed"
    GONE = "gone"
    NEW = "new"

    def __str__(self) -> str:
        return str(self.value)
