from ...enums import OpenEnum


class FoundToolRisk(OpenEnum):
    HIGH = "high"
    LOW = "low"
    MEDIUM = "medium"

    def __str__(self) -> str:
        return str(self.value)
