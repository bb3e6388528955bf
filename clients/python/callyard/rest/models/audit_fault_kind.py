from ...enums import OpenEnum


class AuditFaultKind(OpenEnum):
    ADDED = "added"
    CHANGED = "changed"
    CUT = "cut"
    GAP = "gap"

    def __str__(self) -> str:
        return str(self.value)
