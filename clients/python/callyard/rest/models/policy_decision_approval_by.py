from ...enums import OpenEnum


class PolicyDecisionApprovalBy(OpenEnum):
    CALLER = "caller"
    GROUPS = "groups"

    def __str__(self) -> str:
        return str(self.value)
