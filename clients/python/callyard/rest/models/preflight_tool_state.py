from ...enums import OpenEnum


class PreflightToolState(OpenEnum):
    CHANGED = "changed"
    DENIED = "denied"
    DISABLED = "disabled"
    MISSING = "missing"
    OFFLINE = "offline"
    READY = "ready"
    UNACCEPTED = "unaccepted"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return str(self.value)
