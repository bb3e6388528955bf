from ...enums import OpenEnum


class ProviderToolListFormat(OpenEnum):
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"

    def __str__(self) -> str:
        return str(self.value)
