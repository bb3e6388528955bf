from enum import StrEnum


class ConfirmationRequestOutcome(StrEnum):
    HELD = "held"

    def __str__(self) -> str:
        return str(self.value)
