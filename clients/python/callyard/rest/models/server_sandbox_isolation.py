from ...enums import OpenEnum


class ServerSandboxIsolation(OpenEnum):
    BUBBLEWRAP = "bubblewrap"
    CONTAINER = "container"

    def __str__(self) -> str:
        return str(self.value)
