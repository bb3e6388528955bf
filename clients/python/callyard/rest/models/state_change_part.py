from ...enums import OpenEnum


class StateChangePart(OpenEnum):
    KEYS = "keys"
    PINS = "pins"
    POLICY = "policy"
    SETS = "sets"
    SWITCHES = "switches"
    TENANT_SETS = "tenant_sets"

    def __str__(self) -> str:
        return str(self.value)
