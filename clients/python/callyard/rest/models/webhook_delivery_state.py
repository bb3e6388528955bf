from enum import StrEnum


class WebhookDeliveryState(StrEnum):
    DEAD = "dead"
    WAITING = "waiting"

    def __str__(self) -> str:
        return str(self.value)
