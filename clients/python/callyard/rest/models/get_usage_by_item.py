from enum import StrEnum


class GetUsageByItem(StrEnum):
    KEY = "key"
    SERVER = "server"
    TENANT = "tenant"
    TOOL = "tool"

    def __str__(self) -> str:
        return str(self.value)
