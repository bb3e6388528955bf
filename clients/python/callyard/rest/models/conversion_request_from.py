from enum import StrEnum


class ConversionRequestFrom(StrEnum):
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    MCP = "mcp"
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"

    def __str__(self) -> str:
        return str(self.value)
