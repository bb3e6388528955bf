from ...enums import OpenEnum


class ListAuditKindItem(OpenEnum):
    ACT_BEGUN = "act-begun"
    ACT_ENDED = "act-ended"
    ASKED = "asked"
    CANCELED = "canceled"
    DECIDED = "decided"
    DEFINITION_ACCEPTED = "definition-accepted"
    EDITED = "edited"
    ENDED = "ended"
    ESCALATED = "escalated"
    EXPIRED = "expired"
    EXTENDED = "extended"
    GRANT_DENIED = "grant-denied"
    GRANT_ENDED = "grant-ended"
    GRANT_GIVEN = "grant-given"
    GRANT_REDEEMED = "grant-redeemed"
    GRANT_RENEWED = "grant-renewed"
    HELD = "held"
    PERMISSION_GIVEN = "permission-given"
    PERMISSION_REVOKED = "permission-revoked"
    PERMISSION_USED = "permission-used"
    RAN = "ran"
    RESTARTED = "restarted"
    REVOKED = "revoked"
    SPENT = "spent"

    def __str__(self) -> str:
        return str(self.value)
