from enum import StrEnum


class RevokedAPIKeyStatus(StrEnum):
    REVOKED = "revoked"

    def __str__(self) -> str:
        return str(self.value)
