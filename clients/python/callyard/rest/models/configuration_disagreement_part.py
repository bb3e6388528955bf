from ...enums import OpenEnum


class ConfigurationDisagreementPart(OpenEnum):
    CALLER_KEYS = "caller_keys"
    KEYS = "keys"
    PEOPLE_KEYS = "people_keys"
    POLICY = "policy"
    SERVERS = "servers"

    def __str__(self) -> str:
        return str(self.value)
