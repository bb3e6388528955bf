from ...enums import OpenEnum


class ToolPinState(OpenEnum):
    ACCEPTED = "accepted"
    CHANGED = "changed"
    GONE = "gone"
    NEW = "new"

    def __str__(self) -> str:
        return str(self.value)
