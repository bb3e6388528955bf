from enum import StrEnum


class WorkerServerInitializationState(StrEnum):
    ERROR = "error"
    INITIALIZED = "initialized"
    STARTING = "starting"
    TIMEOUT = "timeout"

    def __str__(self) -> str:
        return str(self.value)
