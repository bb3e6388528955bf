package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

const defaultApproverURL = "http://127.0.0.1:8081"

// approvalCommands returns the commands for people who decide. They talk to the
// approver, not to the front door, and expect the persistent flags of
// [clientCommands].
func approvalCommands() []*cobra.Command {
	list := &cobra.Command{
		Use:   "approvals",
		Short: "List the calls that wait for a person's yes, or did",
		Args:  takes(0, 0),
	}
	state := list.Flags().String("state", "pending", "only those in this state; several with commas, all with an empty text")
	list.RunE = withApprover(func(cmd *cobra.Command, c *client, _ []string) error {
		return c.listApprovals(cmd.Context(), *state)
	})
	show := &cobra.Command{
		Use:   "show ID",
		Short: "Show one call with its exact arguments",
		Args:  takes(1, 1),
		RunE: withApprover(func(cmd *cobra.Command, c *client, args []string) error {
			return c.showApproval(cmd.Context(), args[0])
		}),
	}
	list.AddCommand(show)

	approve := &cobra.Command{
		Use:   "approve ID",
		Short: "Let a held call run, with the arguments that are shown or with edited ones",
		Long: "approve shows the arguments byte for byte, asks, and approves exactly those.\n\n" +
			"With --edit they are opened in $VISUAL or $EDITOR first, and with --arguments they are replaced by those of a file: what is shown and approved then is what you made of them. " +
			"The policy judges edited arguments again: the call may need more approvals than before, and may not run at all.",
		Example: "  callyard approve appr_06b2t8m3c0w3v2q5n7k9a1d4fz\n  callyard approve appr_06b2t8m3c0w3v2q5n7k9a1d4fz --edit\n  callyard approve appr_06b2t8m3c0w3v2q5n7k9a1d4fz --arguments smaller.json --yes --reason \"half of it\"",
		Args:    takes(1, 1),
	}
	var o approveOptions
	f := approve.Flags()
	f.BoolVar(&o.yes, "yes", false, "do not ask")
	f.StringVar(&o.reason, "reason", "", "why, for the record")
	f.BoolVar(&o.edit, "edit", false, "open the arguments in $VISUAL or $EDITOR first")
	f.StringVar(&o.file, "arguments", "", "replace the arguments by those of this file, a JSON object; - is the standard input")
	approve.MarkFlagsMutuallyExclusive("edit", "arguments")
	approve.RunE = withApprover(func(cmd *cobra.Command, c *client, args []string) error {
		return c.approve(cmd.Context(), args[0], o, cmd.InOrStdin())
	})
	deny := &cobra.Command{
		Use:   "deny ID",
		Short: "Say no to a held call",
		Args:  takes(1, 1),
	}
	reason := deny.Flags().String("reason", "", "why, for the record and for who asked")
	deny.RunE = withApprover(func(cmd *cobra.Command, c *client, args []string) error {
		return c.decide(cmd.Context(), args[0], decisionBody{Kind: "deny", Reason: *reason})
	})
	offer(list, "state", "pending", "approved", "running", "succeeded", "failed", "denied", "expired", "canceled", "unknown")
	show.ValidArgsFunction, approve.ValidArgsFunction, deny.ValidArgsFunction = completing(approvalIDs), completing(pendingIDs), completing(pendingIDs)
	commands := []*cobra.Command{list, approve, deny, permissionsCommand()}
	for _, cmd := range commands {
		cmd.PersistentFlags().String("approver-url", "", "address of the approver (CALLYARD_APPROVER_URL, default "+defaultApproverURL+")")
	}
	return commands
}

// withApprover is [withClient] for a client of the approver.
func withApprover(run func(cmd *cobra.Command, c *client, args []string) error) func(*cobra.Command, []string) error {
	return withClient(func(cmd *cobra.Command, c *client, args []string) error {
		address, err := cmd.Flags().GetString("approver-url")
		if err != nil {
			return fail(exitUsage, "%w", err)
		}
		if c.base, err = baseURL(firstOf(address, os.Getenv("CALLYARD_APPROVER_URL"), defaultApproverURL)); err != nil {
			return fail(exitUsage, "--approver-url: %w", err)
		}
		if err := c.connect(); err != nil {
			return err
		}
		return run(cmd, c, args)
	})
}

// approvalItem is what the commands read of an approval.
type approvalItem struct {
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	State     string `json:"state"`
	Requester struct {
		Name  string `json:"name"`
		Owner string `json:"owner"`
	} `json:"requester"`
	Server    string   `json:"server"`
	Tool      string   `json:"tool"`
	Level     int      `json:"risk_level"`
	Reasons   []string `json:"reasons"`
	Digest    string   `json:"arguments_digest"`
	Edited    bool     `json:"edited"`
	Needed    int      `json:"needed"`
	Agreed    int      `json:"agreed"`
	ExpiresIn int64    `json:"expires_in_ms"`
	Blocked   string   `json:"may_not_because"`
	Arguments struct {
		Base64    string `json:"base64"`
		Forgotten string `json:"forgotten"`
	} `json:"arguments"`
	Decisions []struct {
		By     string    `json:"by"`
		Kind   string    `json:"kind"`
		Reason string    `json:"reason"`
		At     time.Time `json:"at"`
	} `json:"decisions"`
	Restarts []struct {
		At     time.Time `json:"at"`
		Reason string    `json:"reason"`
	} `json:"restarts"`
}

func (c *client) listApprovals(ctx context.Context, state string) error {
	query := url.Values{}
	if state != "" {
		query.Set("state", state)
	}
	var all []json.RawMessage
	var rows [][]cell
	for {
		var page struct {
			Approvals []json.RawMessage `json:"approvals"`
			Next      string            `json:"next_cursor"`
		}
		if _, err := c.report(ctx, c.other(http.MethodGet, "/approvals?"+query.Encode(), nil), &page); err != nil {
			return err
		}
		for _, raw := range page.Approvals {
			var a approvalItem
			if err := json.Unmarshal(raw, &a); err != nil {
				return c.foreign()
			}
			all = append(all, raw)
			rows = append(rows, []cell{
				{text: a.ID}, approvalState(a.State), {text: a.Server}, {text: a.Tool}, riskCell(a.Level), {text: a.Requester.Name},
				{text: a.agreed()}, {text: a.left()}, {text: firstReason(a.Reasons)},
			})
		}
		if page.Next == "" {
			break
		}
		query.Set("cursor", page.Next)
	}
	if c.json {
		if all == nil {
			all = []json.RawMessage{}
		}
		text, err := json.Marshal(map[string]any{"approvals": all})
		if err != nil {
			return err
		}
		return c.out.raw(text)
	}
	return c.out.table([]string{"APPROVAL", "STATE", "SERVER", "TOOL", "RISK", "ASKED BY", "AGREED", "LEFT", "WHY"}, rows)
}

func firstReason(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

func (a *approvalItem) agreed() string {
	return strconv.Itoa(a.Agreed) + " of " + strconv.Itoa(a.Needed)
}

func (a *approvalItem) left() string {
	if a.State != "pending" || a.ExpiresIn <= 0 {
		return ""
	}
	return (time.Duration(a.ExpiresIn) * time.Millisecond).Round(time.Second).String()
}

func approvalState(state string) cell {
	switch state {
	case "pending", "approved", "running":
		return cell{state, yellow}
	case "succeeded":
		return cell{state, green}
	}
	return cell{state, red}
}

// readApproval returns an approval with the bytes that would run.
func (c *client) readApproval(ctx context.Context, id string) (a approvalItem, args, raw []byte, err error) {
	if raw, err = c.report(ctx, c.other(http.MethodGet, "/approvals/"+segment(id), nil), &a); err != nil {
		return a, nil, nil, err
	}
	if args, err = base64.StdEncoding.DecodeString(a.Arguments.Base64); err != nil {
		return a, nil, nil, c.foreign()
	}
	return a, args, raw, nil
}

func (c *client) showApproval(ctx context.Context, id string) error {
	a, args, raw, err := c.readApproval(ctx, id)
	if err != nil {
		return err
	}
	if c.json {
		return c.out.raw(raw)
	}
	return a.write(c.out, args)
}

// write shows the approval, its arguments byte for byte.
func (a *approvalItem) write(out screen, args []byte) error {
	out.width = 0 // nothing of a single approval is cut
	rows := [][]cell{{{text: "approval"}, {text: a.ID}}, {{text: "state"}, approvalState(a.State)}}
	for _, l := range []struct{ name, value string }{
		{"tool", a.Tool + " on " + a.Server}, {"asked by", a.Requester.Name}, {"for", a.Requester.Owner}, {"risk", riskCell(a.Level).text},
		{"agreed", a.agreed()}, {"time left", a.left()}, {"why it waits", strings.Join(a.Reasons, " ")}, {"not for you", a.Blocked}, {"arguments", a.Digest},
	} {
		if l.value != "" {
			rows = append(rows, cells(l.name, l.value))
		}
	}
	for _, d := range a.Decisions {
		rows = append(rows, cells(d.Kind, strings.TrimSpace(d.By+", "+d.At.UTC().Format(time.DateTime)+" "+d.Reason)))
	}
	for _, r := range a.Restarts {
		rows = append(rows, cells("restarted", r.At.UTC().Format(time.DateTime)+" "+r.Reason+" Earlier approvals are void."))
	}
	if err := out.columns(rows); err != nil {
		return err
	}
	title := "Arguments"
	if a.Edited {
		title = "Arguments, edited since they were asked for"
	}
	if a.Arguments.Forgotten != "" {
		return out.text("\n" + out.paint(bold, title) + "\n" + a.Arguments.Forgotten + "\n")
	}
	return out.text("\n" + out.paint(bold, title) + " (" + size(len(args)) + ")\n" + exact(args) + "\n")
}

// exact is the text with all that a terminal would hide, move or draw like
// something else as an escape: what somebody says yes to must be seen.
func exact(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, b[0])
		case r == '\n', r >= ' ' && r < 0x7f, unicode.IsOneOf([]*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul}, r) && r < 0xFF00 && r != 0x115F && r != 0x1160 && r != 0x3164:
			out.WriteRune(r)
		default:
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		b = b[n:]
	}
	return out.String()
}

type decisionBody struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Arguments are those of the kind edit, as the bytes that shall run.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func (c *client) decide(ctx context.Context, id string, d decisionBody) error {
	body, err := d.encode()
	if err != nil {
		return err
	}
	var a approvalItem
	raw, err := c.report(ctx, c.other(http.MethodPost, "/approvals/"+segment(id)+"/decisions", body), &a)
	if err != nil {
		return err
	}
	if c.json {
		return c.out.raw(raw)
	}
	text := "Recorded: the call is " + a.State + "."
	if a.State == "pending" {
		text = "Recorded: " + a.agreed() + " agreed; the call waits for more."
	}
	return c.out.text(oneLine(text) + "\n")
}
