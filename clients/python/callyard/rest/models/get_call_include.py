from enum import StrEnum


class GetCallInclude(StrEnum):
    ARGUMENTS = "arguments"

    def __str__(self) -> str:
        return str(self.value)
