from ...enums import OpenEnum


class GetUsageByItem(OpenEnum):
    KEY = "key"
    SERVER = "server"
    TENANT = "tenant"
    TOOL = "tool"

    def __str__(self) -> str:
        return str(self.value)
