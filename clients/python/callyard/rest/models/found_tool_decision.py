from ...enums import OpenEnum


class FoundToolDecision(OpenEnum):
    DENY = "deny"
    HOLD = "hold"
    RUN = "run"
    SANDBOX = "sandbox"

    def __str__(self) -> str:
        return str(self.value)
