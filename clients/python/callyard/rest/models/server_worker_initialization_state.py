from ...enums import OpenEnum


class ServerWorkerInitializationState(OpenEnum):
    ERROR = "error"
    INITIALIZED = "initialized"
    STARTING = "starting"
    TIMEOUT = "timeout"

    def __str__(self) -> str:
        return str(self.value)
