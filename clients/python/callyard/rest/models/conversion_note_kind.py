from enum import StrEnum


class ConversionNoteKind(StrEnum):
    CHANGED = "changed"
    DROPPED = "dropped"
    SKIPPED = "skipped"

    def __str__(self) -> str:
        return str(self.value)
