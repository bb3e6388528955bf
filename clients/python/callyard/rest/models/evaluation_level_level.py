from ...enums import OpenEnum


class EvaluationLevelLevel(OpenEnum):
    LENIENT = "lenient"
    PUBLISHED = "published"
    STRICT = "strict"

    def __str__(self) -> str:
        return str(self.value)
