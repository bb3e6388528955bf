from ...enums import OpenEnum


class ListBatchesState(OpenEnum):
    CANCELING = "canceling"
    ENDED = "ended"
    RECEIVING = "receiving"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)
