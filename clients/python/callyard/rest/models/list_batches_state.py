from enum import StrEnum


class ListBatchesState(StrEnum):
    CANCELING = "canceling"
    ENDED = "ended"
    RECEIVING = "receiving"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)
