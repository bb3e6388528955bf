from ...enums import OpenEnum


class ProbeStatusStatus(OpenEnum):
    OK = "ok"
    READY = "ready"

    def __str__(self) -> str:
        return str(self.value)
