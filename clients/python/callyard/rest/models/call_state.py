from ...enums import OpenEnum


class CallState(OpenEnum):
    CANCELED = "canceled"
    DENIED = "denied"
    EXPIRED = "expired"
    FAILED = "failed"
    HELD = "held"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return str(self.value)
