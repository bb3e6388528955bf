from ...enums import OpenEnum


class PolicyDryRunChangeNow(OpenEnum):
    ALLOWED = "allowed"
    HELD = "held"
    REFUSED = "refused"

    def __str__(self) -> str:
        return str(self.value)
