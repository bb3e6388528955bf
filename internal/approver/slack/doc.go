// Package slack is the approver in Slack: cards in channels, and answers by clicks.
//
// It owns what a card shows and how a click comes in, by Socket mode and by the
// signed HTTP endpoint. It promises that a card shows the stored bytes with every
// character visible that could deceive, but for values that the tool's schema marks
// as secret, and never cuts without saying how much; that a card says what became
// of the question, wherever it was decided, also when Slack or this process was
// away meanwhile; and that Slack delays nobody.
//
// A click counts when Slack signed it, in this workspace and for this app, once;
// when the account that clicked is connected to a principal of the approver
// ([enrol.Book]); when the policy lets calls of that level be decided in Slack; and
// when it answers what would run now. Everything else is refused with a sentence
// that only who clicked sees. Who may decide, and when, is said by
// [approval.Desk.Decide], as on the pages.
//
// It refuses to hold tokens of approvals, to take edits, and to follow addresses
// that came with a request. It never logs arguments, texts or secrets.
package slack
