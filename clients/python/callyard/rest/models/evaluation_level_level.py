from enum import StrEnum


class EvaluationLevelLevel(StrEnum):
    LENIENT = "lenient"
    PUBLISHED = "published"
    STRICT = "strict"

    def __str__(self) -> str:
        return str(self.value)
