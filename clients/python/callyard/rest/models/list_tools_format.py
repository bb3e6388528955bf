from ...enums import OpenEnum


class ListToolsFormat(OpenEnum):
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    MCP = "mcp"
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"

    def __str__(self) -> str:
        return str(self.value)
