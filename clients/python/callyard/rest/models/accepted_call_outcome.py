from enum import StrEnum


class AcceptedCallOutcome(StrEnum):
    ACCEPTED = "accepted"

    def __str__(self) -> str:
        return str(self.value)
