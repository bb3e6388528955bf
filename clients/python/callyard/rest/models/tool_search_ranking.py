from ...enums import OpenEnum


class ToolSearchRanking(OpenEnum):
    BM25F = "bm25f"
    HYBRID = "hybrid"

    def __str__(self) -> str:
        return str(self.value)
