// Package slack is the approver in Slack: cards in channels, and decisions by clicks.
//
// It owns the content of cards and the receipt of clicks, over Socket Mode and the signed HTTP
// endpoint. A card shows the stored bytes, except for values that the tool's schema marks as
// secret. Every character that could deceive is visible, and a truncation states the number of
// omitted bytes. A card shows the outcome of the approval, wherever it was decided, even if Slack
// or this process was down at the time. Slack never delays other work.
//
// A click counts once, and only under these conditions: Slack signed it, in this workspace and for
// this app; the account is connected to a principal of the approver ([enrol.Book]); the policy
// allows calls of that level to be decided in Slack; and it refers to the arguments that would run now.
// Every other click is refused with a message that only its sender sees. [approval.Desk.Decide]
// determines who may decide and when, as on the pages.
//
// It does not hold tokens of approvals, accept edits, or follow addresses in a request. It never
// logs arguments, texts or secrets.
package slack
