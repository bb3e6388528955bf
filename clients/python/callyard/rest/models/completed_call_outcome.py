from enum import StrEnum


class CompletedCallOutcome(StrEnum):
    COMPLETED = "completed"

    def __str__(self) -> str:
        return str(self.value)
