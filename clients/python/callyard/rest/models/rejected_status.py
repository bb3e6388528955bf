from enum import StrEnum


class RejectedStatus(StrEnum):
    REJECTED = "rejected"

    def __str__(self) -> str:
        return str(self.value)
