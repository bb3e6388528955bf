from enum import StrEnum


class PolicyDecisionApprovalBy(StrEnum):
    CALLER = "caller"
    GROUPS = "groups"

    def __str__(self) -> str:
        return str(self.value)
