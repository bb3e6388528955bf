from ...enums import OpenEnum


class WebhookDeliveryState(OpenEnum):
    DEAD = "dead"
    WAITING = "waiting"

    def __str__(self) -> str:
        return str(self.value)
