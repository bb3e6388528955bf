from ...enums import OpenEnum


class ListWebhookDeliveriesState(OpenEnum):
    DEAD = "dead"
    WAITING = "waiting"

    def __str__(self) -> str:
        return str(self.value)
