from ...enums import OpenEnum


class ToolCallItemState(OpenEnum):
    ACCEPTED = "accepted"
    FAILED = "failed"
    HELD = "held"
    SUCCEEDED = "succeeded"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return str(self.value)
