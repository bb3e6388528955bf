from enum import StrEnum


class ToolSearchRanking(StrEnum):
    BM25F = "bm25f"
    HYBRID = "hybrid"

    def __str__(self) -> str:
        return str(self.value)
