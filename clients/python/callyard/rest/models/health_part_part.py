from ...enums import OpenEnum


class HealthPartPart(OpenEnum):
    KEYS = "keys"
    POLICY = "policy"
    SERVERS = "servers"

    def __str__(self) -> str:
        return str(self.value)
