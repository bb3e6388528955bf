from enum import StrEnum


class ListWebhookDeliveriesState(StrEnum):
    DEAD = "dead"
    WAITING = "waiting"

    def __str__(self) -> str:
        return str(self.value)
