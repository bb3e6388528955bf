from ...enums import OpenEnum


class ConversionNoteKind(OpenEnum):
    CHANGED = "changed"
    DROPPED = "dropped"
    SKIPPED = "skipped"

    def __str__(self) -> str:
        return str(self.value)
