from ...enums import OpenEnum


class SetItemOrigin(OpenEnum):
    API = "api"
    CONFIGURATION = "configuration"

    def __str__(self) -> str:
        return str(self.value)
