from ...enums import OpenEnum


class CallRecordDecision(OpenEnum):
    ALLOWED = "allowed"
    HELD = "held"
    REFUSED = "refused"

    def __str__(self) -> str:
        return str(self.value)
