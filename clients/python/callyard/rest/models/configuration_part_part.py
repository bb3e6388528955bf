from enum import StrEnum


class ConfigurationPartPart(StrEnum):
    KEYS = "keys"
    POLICY = "policy"
    SERVERS = "servers"

    def __str__(self) -> str:
        return str(self.value)
