from enum import StrEnum


class ToolCallItemState(StrEnum):
    ACCEPTED = "accepted"
    FAILED = "failed"
    HELD = "held"
    SUCCEEDED = "succeeded"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return str(self.value)
