from enum import StrEnum


class DrainingWorkerStatus(StrEnum):
    DRAINING = "draining"

    def __str__(self) -> str:
        return str(self.value)
