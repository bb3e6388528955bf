from ...enums import OpenEnum


class GetUsageInterval(OpenEnum):
    DAY = "day"
    HOUR = "hour"

    def __str__(self) -> str:
        return str(self.value)
