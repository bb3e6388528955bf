from ...enums import OpenEnum


class CreateToolCallsFormat(OpenEnum):
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    MCP = "mcp"
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"

    def __str__(self) -> str:
        return str(self.value)
