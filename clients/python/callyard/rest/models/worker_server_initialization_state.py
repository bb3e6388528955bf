from ...enums import OpenEnum


class WorkerServerInitializationState(OpenEnum):
    ERROR = "error"
    INITIALIZED = "initialized"
    STARTING = "starting"
    TIMEOUT = "timeout"

    def __str__(self) -> str:
        return str(self.value)
