from enum import StrEnum


class PolicyDecisionDecision(StrEnum):
    ALLOWED = "allowed"
    HELD = "held"
    REFUSED = "refused"

    def __str__(self) -> str:
        return str(self.value)
