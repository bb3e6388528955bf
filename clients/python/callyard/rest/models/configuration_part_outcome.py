from ...enums import OpenEnum


class ConfigurationPartOutcome(OpenEnum):
    IN_FORCE = "in force"
    REFUSED = "refused"

    def __str__(self) -> str:
        return str(self.value)
