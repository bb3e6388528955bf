from enum import StrEnum


class PreflightToolDecision(StrEnum):
    DENY = "deny"
    HOLD = "hold"
    RUN = "run"
    SANDBOX = "sandbox"

    def __str__(self) -> str:
        return str(self.value)
