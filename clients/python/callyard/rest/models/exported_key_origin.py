from ...enums import OpenEnum


class ExportedKeyOrigin(OpenEnum):
    API = "api"
    CONFIGURATION = "configuration"

    def __str__(self) -> str:
        return str(self.value)
