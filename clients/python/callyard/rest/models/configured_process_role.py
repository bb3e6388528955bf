from enum import StrEnum


class ConfiguredProcessRole(StrEnum):
    APPROVER = "approver"
    FRONTDOOR = "frontdoor"
    WORKER = "worker"

    def __str__(self) -> str:
        return str(self.value)
