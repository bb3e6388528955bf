from ...enums import OpenEnum


class SettleRequestAs(OpenEnum):
    DONE = "done"
    FAILED = "failed"
    RUN_AGAIN = "run-again"

    def __str__(self) -> str:
        return str(self.value)
