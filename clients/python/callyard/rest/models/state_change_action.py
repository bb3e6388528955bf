from enum import StrEnum


class StateChangeAction(StrEnum):
    ADD = "add"
    CHANGE = "change"
    DIFFERS = "differs"
    REMOVE = "remove"
    SKIP = "skip"

    def __str__(self) -> str:
        return str(self.value)
