from enum import StrEnum


class PolicyDecisionArguments(StrEnum):
    INVALID = "invalid"
    UNCHECKED = "unchecked"
    VALID = "valid"

    def __str__(self) -> str:
        return str(self.value)
