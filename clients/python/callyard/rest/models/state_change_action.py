from ...enums import OpenEnum


class StateChangeAction(OpenEnum):
    ADD = "add"
    CHANGE = "change"
    DIFFERS = "differs"
    REMOVE = "remove"
    SKIP = "skip"

    def __str__(self) -> str:
        return str(self.value)
