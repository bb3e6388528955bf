from ...enums import OpenEnum


class HealthServerInitializationState(OpenEnum):
    ERROR = "error"
    INITIALIZED = "initialized"
    STARTING = "starting"
    TIMEOUT = "timeout"

    def __str__(self) -> str:
        return str(self.value)
