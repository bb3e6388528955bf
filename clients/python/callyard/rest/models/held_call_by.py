from ...enums import OpenEnum


class HeldCallBy(OpenEnum):
    CALLER = "caller"
    PEOPLE = "people"

    def __str__(self) -> str:
        return str(self.value)
