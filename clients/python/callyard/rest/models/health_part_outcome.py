from enum import StrEnum


class HealthPartOutcome(StrEnum):
    IN_FORCE = "in force"
    REFUSED = "refused"

    def __str__(self) -> str:
        return str(self.value)
