from enum import StrEnum


class APIKeyRole(StrEnum):
    AUDITOR = "auditor"
    CALLER = "caller"
    DEVELOPER = "developer"
    PLATFORM_ADMIN = "platform-admin"
    TENANT_ADMIN = "tenant-admin"

    def __str__(self) -> str:
        return str(self.value)
