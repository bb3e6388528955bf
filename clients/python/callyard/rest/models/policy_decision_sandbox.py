from enum import StrEnum


class PolicyDecisionSandbox(StrEnum):
    CONTAINER = "container"

    def __str__(self) -> str:
        return str(self.value)
