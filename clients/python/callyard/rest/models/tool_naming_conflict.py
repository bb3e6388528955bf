from ...enums import OpenEnum


class ToolNamingConflict(OpenEnum):
    ERROR = "error"
    PREFER = "prefer"
    RENAME = "rename"

    def __str__(self) -> str:
        return str(self.value)
