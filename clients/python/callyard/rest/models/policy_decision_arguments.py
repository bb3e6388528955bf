from ...enums import OpenEnum


class PolicyDecisionArguments(OpenEnum):
    INVALID = "invalid"
    UNCHECKED = "unchecked"
    VALID = "valid"

    def __str__(self) -> str:
        return str(self.value)
