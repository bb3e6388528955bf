from enum import StrEnum


class ToolNamingConflict(StrEnum):
    ERROR = "error"
    PREFER = "prefer"
    RENAME = "rename"

    def __str__(self) -> str:
        return str(self.value)
