from enum import StrEnum


class SettleRequestAs(StrEnum):
    DONE = "done"
    FAILED = "failed"
    RUN_AGAIN = "run-again"

    def __str__(self) -> str:
        return str(self.value)
