from enum import StrEnum


class BatchState(StrEnum):
    CANCELED = "canceled"
    CANCELING = "canceling"
    COMPLETED = "completed"
    EXPIRED = "expired"
    FAILED = "failed"
    RECEIVING = "receiving"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)
