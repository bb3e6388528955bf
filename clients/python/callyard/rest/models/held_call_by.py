from enum import StrEnum


class HeldCallBy(StrEnum):
    CALLER = "caller"
    PEOPLE = "people"

    def __str__(self) -> str:
        return str(self.value)
