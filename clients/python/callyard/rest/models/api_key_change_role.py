from ...enums import OpenEnum


class APIKeyChangeRole(OpenEnum):
    AUDITOR = "auditor"
    CALLER = "caller"
    DEVELOPER = "developer"
    PLATFORM_ADMIN = "platform-admin"
    TENANT_ADMIN = "tenant-admin"

    def __str__(self) -> str:
        return str(self.value)
