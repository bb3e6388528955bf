from ...enums import OpenEnum


class ConfiguredProcessRole(OpenEnum):
    APPROVER = "approver"
    FRONTDOOR = "frontdoor"
    WORKER = "worker"

    def __str__(self) -> str:
        return str(self.value)
