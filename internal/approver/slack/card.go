package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/kit/visible"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Action IDs of the card's controls.
const (
	actApprove = "approve"
	actDeny    = "deny"
	actShow    = "show"
	actPage    = "page" // a link; Slack also sends an event for it
)

const (
	// folded limits the arguments that a card shows, in bytes. A button shows the rest.
	folded = 900
	// unfolded limits the arguments that the window behind that button shows, in bytes. Calls with
	// larger arguments are decided on the page, because nobody can have read them here.
	unfolded = 40_000
	// chunk is the maximum size of a text block, in bytes.
	chunk = 2500
	// maxHeader is Slack's limit for the text of a header, in characters.
	maxHeader = 150
	// maxNote limits a name or a reason on a card, in bytes.
	maxNote = 500
)

// asked is an approval with all data of its card.
type asked struct {
	*ledger.Approval
	rule *risk.Approval
	args string // the effective arguments, with secrets hidden and misleading characters escaped
	page string
	// decidable reports whether calls of its risk level may be decided in Slack.
	decidable bool
	// moves reports whether only an earlier rule asked the channel of the card.
	moves bool
}

// card is a message: its blocks, the text of the notification, and a checksum of both.
type card struct {
	blocks []api.Block
	text   string
	sum    string
}

// reference identifies the call that the user sees: the ID of the approval, and a prefix of
// the digest of the effective arguments.
type reference struct {
	id    schema.ApprovalID
	short string
}

// shortDigest is the number of hex digits of the digest in a button value.
const shortDigest = 24

func referenceTo(a *ledger.Approval) reference {
	bound := a.Bound()
	hex := strings.TrimPrefix(bound.ArgumentsDigest, "sha256:")
	return reference{a.ID, hex[:min(shortDigest, len(hex))]}
}

func (r reference) String() string { return string(r.id) + "." + r.short }

// parseReference parses the value of a button.
func parseReference(text string) (reference, bool) {
	id, short, ok := strings.Cut(text, ".")
	ok = ok && len(id) <= 64 && strings.HasPrefix(id, "appr_") && len(short) == shortDigest
	for _, c := range []byte(id) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_')
	}
	for _, c := range []byte(short) {
		ok = ok && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f')
	}
	return reference{schema.ApprovalID(id), short}, ok
}

// clean returns text on one line, with misleading characters written as escapes.
func clean(text string) string {
	text = strings.ReplaceAll(visible.Escaped([]byte(text)), "\n", `\n`)
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
	return clip(text, maxNote)
}

// clip truncates text to a number of bytes and appends the number of omitted bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head := truncate.Head(text, most)
	return fmt.Sprintf("%s… (%d more bytes)", head, len(text)-len(head))
}

func displayName(name, owner string) string {
	name = strings.TrimPrefix(name, settings.NamePrefix)
	if owner == "" || owner == name {
		return clean(name)
	}
	return clean(name) + " (" + clean(owner) + ")"
}

// shownArguments returns the arguments as Slack shows them.
func shownArguments(args, definition []byte) string {
	m, ok := marksOf(definition)
	if !ok {
		return "(The tool definition cannot be read, so secret arguments cannot be identified; see the arguments on the request's page.)"
	}
	shown, err := m.hide(args)
	if err != nil {
		return "(The arguments cannot be shown here; see them on the request's page.)"
	}
	shown = visible.Readable(shown)
	var b bytes.Buffer
	if json.Indent(&b, shown, "", "  ") != nil || b.Len() > 4*len(shown)+1<<20 {
		return visible.Escaped(shown)
	}
	return visible.Escaped(b.Bytes())
}

func text(s string) api.RichTextSectionElement { return api.NewRichTextSectionTextElement(s, nil) }

func bold(s string) api.RichTextSectionElement {
	return api.NewRichTextSectionTextElement(s, &api.RichTextSectionTextStyle{Bold: true})
}

func date(at time.Time) api.RichTextSectionElement {
	fallback := at.UTC().Format("2006-01-02 15:04 UTC")
	return api.NewRichTextSectionDateElement(at.Unix(), "{date_short_pretty} at {time}", nil, &fallback)
}

func plain(s string) *api.TextBlockObject {
	return api.NewTextBlockObject(api.PlainTextType, s, false, false)
}

func preformatted(s string) *api.RichTextPreformatted {
	return &api.RichTextPreformatted{Type: api.RTEPreformatted, Elements: []api.RichTextSectionElement{text(s)}}
}

// verdict returns the state in words.
func (q *asked) verdict() string {
	switch q.State {
	case ledger.Pending:
		return "Approval required"
	case ledger.Denied:
		return "Denied"
	case ledger.Expired:
		return "Expired"
	case ledger.Revoked:
		return "Withdrawn"
	case ledger.Canceled:
		return "Canceled by the caller"
	}
	return "Approved"
}

// card builds the message. It depends only on the record, so that the same record produces the same
// card.
func (q *asked) card(denials []string) card {
	if q.moves {
		return q.moved()
	}
	subject := clean(q.Binding.Tool) + " on " + clean(string(q.Binding.Server))
	head := []rune(q.verdict() + ": " + subject)
	if len(head) > maxHeader {
		head = append(head[:maxHeader-1:maxHeader-1], '…')
	}
	c := card{text: q.verdict() + ": " + subject + ", requested by " + displayName(q.Binding.Requester.Name, q.Binding.Requester.Owner)}
	c.blocks = []api.Block{api.NewHeaderBlock(plain(string(head))), api.NewRichTextBlock("about", q.about()...)}
	if q.State == ledger.Pending {
		c.blocks = append(c.blocks, api.NewActionBlock("answer", q.buttons(denials)...))
		if why := q.elsewhere(); why != "" {
			c.blocks = append(c.blocks, api.NewContextBlock("elsewhere", plain(why)))
		}
	} else {
		c.blocks = append(c.blocks, api.NewActionBlock("answer", q.link()))
	}
	return c.sealed()
}

// moved returns the card for a channel whose group is no longer asked.
func (q *asked) moved() card {
	c := card{text: clip(clean(q.Binding.Tool), 80) + " on " + clip(clean(string(q.Binding.Server)), 80) + " can no longer be decided here: another group must approve it. See " + q.page}
	c.blocks = []api.Block{api.NewContextBlock("moved", plain(c.text))}
	return c.sealed()
}

// minimal returns a minimal card, for when Slack rejects the full one.
func (q *asked) minimal() card {
	c := card{text: q.verdict() + ": " + clip(clean(q.Binding.Tool), 80) + " on " + clip(clean(string(q.Binding.Server)), 80) + ". See " + q.page}
	return c.sealed()
}

func (c card) sealed() card {
	body, err := json.Marshal(c.blocks)
	if err != nil {
		body = nil // cannot happen: the blocks hold only strings
	}
	c.sum = schema.Digest(append(body, c.text...))
	return c
}

// about describes the request and its decisions.
func (q *asked) about() []api.RichTextElement {
	b := q.Bound()
	lines := []api.RichTextSectionElement{bold(clean(b.Tool)), text(" on "), bold(clean(string(b.Server))), text("\nRequested by "), bold(clean(strings.TrimPrefix(b.Requester.Name, settings.NamePrefix)))}
	if b.Requester.Owner != "" && b.Requester.Owner != b.Requester.Name {
		lines = append(lines, text(" for "), bold(clean(b.Requester.Owner)))
	}
	lines = append(lines, text(", "), date(q.Created), text(fmt.Sprintf("\nRisk: %s (level %d)", risk.LevelName(b.Level), b.Level)))
	for _, reason := range q.Reasons {
		lines = append(lines, text("\n• "+clean(reason)))
	}
	lines = append(lines, text(fmt.Sprintf("\n%d of %d approvals from %s", approval.ApprovalCount(q.Approval), max(q.rule.Needed, 1), clean(strings.Join(q.rule.Groups, ", ")))))
	if !q.Escalated.IsZero() {
		lines = append(lines, text("\nEscalated to "+clean(strings.Join(q.rule.EscalateTo, ", "))+" on "), date(q.Escalated))
	}
	for _, r := range q.Restarts {
		lines = append(lines, text("\nApproval restarted on "), date(r.At), text(". "+clean(r.Reason)+" Earlier approvals are void."))
	}
	if q.State == ledger.Pending {
		lines = append(lines, text("\nExpires on "), date(q.Expires), text(fmt.Sprintf(" (%s in total); the call does not run after that", span(q.Expires.Sub(q.Since())))))
	}
	for _, d := range q.Decisions {
		lines = append(lines, text("\n"), bold(displayName(d.By, "")), text(" "+decisionVerb(d.Kind)+" "+where(d.Channel)+", "), date(d.At))
		if d.Reason != "" {
			lines = append(lines, text(": “"+clean(d.Reason)+"”"))
		}
	}
	switch q.State {
	case ledger.Expired, ledger.Canceled:
		lines = append(lines, text("\n"), bold(q.verdict()), text(", "), date(q.Ended))
	}
	label := "Arguments"
	if q.Edited != nil {
		label = "Arguments, edited by " + displayName(q.Edited.By, "")
	}
	shown, rest := q.fold()
	lines = append(lines, text("\n"+label+":"))
	all := []api.RichTextElement{api.NewRichTextSection(lines...), preformatted(shown)}
	if rest > 0 {
		all = append(all, api.NewRichTextSection(text(fmt.Sprintf("… %d more bytes, %s", rest, q.sum()))))
	}
	return all
}

func (q *asked) sum() string {
	bound := q.Bound()
	return bound.ArgumentsDigest
}

// fold returns the beginning of the arguments that fits on the card, and the number of omitted
// bytes.
func (q *asked) fold() (string, int) {
	if len(q.args) <= folded {
		return q.args, 0
	}
	head := truncate.Head(q.args, folded)
	return head, len(q.args) - len(head)
}

func (q *asked) link() api.BlockElement {
	b := api.NewButtonBlockElement(actPage, "", plain("Open request"))
	b.URL = q.page
	return b
}

// buttons returns the allowed actions; if the risk level is too high, only the link.
func (q *asked) buttons(denials []string) []api.BlockElement {
	value := referenceTo(q.Approval).String()
	var all []api.BlockElement
	if q.mayApprove() {
		yes := api.NewButtonBlockElement(actApprove, value, plain("Approve"))
		yes.Style = api.StylePrimary
		all = append(all, yes)
	}
	if q.decidable {
		var options []*api.OptionBlockObject
		for _, reason := range denials {
			options = append(options, api.NewOptionBlockObject(value, plain(reason), nil))
		}
		options = append(options, api.NewOptionBlockObject(value+".other", plain("Other…"), nil))
		for i := range options[:len(options)-1] { // the values of a menu must differ
			options[i].Value = fmt.Sprintf("%s.%d", value, i)
		}
		all = append(all, api.NewOptionsSelectBlockElement(api.OptTypeStatic, plain("Deny…"), actDeny, options...))
	}
	if _, rest := q.fold(); rest > 0 && len(q.args) <= unfolded {
		all = append(all, api.NewButtonBlockElement(actShow, value, plain("Show all arguments")))
	}
	return append(all, q.link())
}

// mayApprove reports whether the call may be approved in Slack. A denial requires less.
func (q *asked) mayApprove() bool {
	return q.decidable && !q.rule.FreshLogin && len(q.args) <= unfolded
}

// elsewhere returns a sentence that lists the actions available only on the page.
func (q *asked) elsewhere() string {
	switch {
	case !q.decidable:
		return "Calls of this risk level are decided on the request's page."
	case q.rule.FreshLogin:
		return "Approving requires a recent sign-in: approve on the request's page. You can also edit the arguments there."
	case len(q.args) > unfolded:
		return "The arguments are too long for Slack: review and approve them on the request's page."
	}
	return "On the request's page you can also edit the arguments or extend the deadline."
}

func decisionVerb(k ledger.DecisionKind) string {
	switch k {
	case ledger.Approve:
		return "approved"
	case ledger.Deny:
		return "denied"
	case ledger.Edit:
		return "edited the arguments and approved"
	case ledger.Extend:
		return "extended the deadline"
	case ledger.Revoke:
		return "withdrew the request"
	}
	return clean(string(k))
}

func where(channel string) string {
	switch channel {
	case Channel:
		return "in Slack"
	case "web":
		return "on the web"
	case "api":
		return "through the API"
	}
	return "through " + clean(channel)
}

// span returns a duration in words.
func span(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}

// ending returns the message for the thread when the call has ended, or "".
func (q *asked) ending() string {
	took := ""
	if q.Runner != nil && !q.Ended.IsZero() {
		took = " after " + q.Ended.Sub(q.Runner.Started).Round(10*time.Millisecond).String()
	}
	switch q.State {
	case ledger.Succeeded:
		if q.ToolError {
			return "The call ended" + took + ": the tool returned an error."
		}
		return "The call succeeded" + took + "."
	case ledger.Failed:
		why := ""
		if q.Error != nil {
			why = " (" + clean(string(q.Error.Kind)) + ")"
		}
		return "The call failed" + took + why + "."
	case ledger.Unknown:
		return "The outcome of the call is unknown: it was sent, and no response arrived. Check its effects before you send it again."
	}
	return ""
}
