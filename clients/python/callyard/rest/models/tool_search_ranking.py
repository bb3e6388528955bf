from enum import StrEnum


class ToolSearchRanking(StrEnum):
    BM25F = "bm25f"

    def __str__(self) -> str:
        return str(self.value)
