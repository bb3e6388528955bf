from enum import StrEnum


class AuditFaultKind(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    CUT = "cut"
    GAP = "gap"

    def __str__(self) -> str:
        return str(self.value)
