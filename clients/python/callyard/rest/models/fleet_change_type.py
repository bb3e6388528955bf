from ...enums import OpenEnum


class FleetChangeType(OpenEnum):
    SERVER_ADDED = "server.added"
    SERVER_OFFLINE = "server.offline"
    SERVER_ONLINE = "server.online"
    SERVER_REMOVED = "server.removed"
    SET_ADDED = "set.added"
    SET_CHANGED = "set.changed"
    SET_REMOVED = "set.removed"
    TOOL_ADDED = "tool.added"
    TOOL_CHANGED = "tool.changed"
    TOOL_DISABLED = "tool.disabled"
    TOOL_ENABLED = "tool.enabled"
    TOOL_REMOVED = "tool.removed"

    def __str__(self) -> str:
        return str(self.value)
