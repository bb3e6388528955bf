from ...enums import OpenEnum


class ConfigurationDisagreementPart(OpenEnum):
    KEYS = "keys"
    POLICY = "policy"
    SERVERS = "servers"

    def __str__(self) -> str:
        return str(self.value)
