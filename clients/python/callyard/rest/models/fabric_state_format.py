from enum import StrEnum


class FabricStateFormat(StrEnum):
    CALLYARD_STATE1 = "callyard-state/1"

    def __str__(self) -> str:
        return str(self.value)
