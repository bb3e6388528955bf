from ...enums import OpenEnum


class BatchState(OpenEnum):
    CANCELED = "canceled"
    CANCELING = "canceling"
    COMPLETED = "completed"
    EXPIRED = "expired"
    FAILED = "failed"
    RECEIVING = "receiving"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)
