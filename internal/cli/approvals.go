package cli

import (
	"cmp"
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

	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/pkg/risk"
)

const defaultApproverURL = "http://127.0.0.1:8081"

// approvalCommands returns the commands for approvers. They call the approver, not the front door,
// and expect the persistent flags of [clientCommands].
func approvalCommands() []*cobra.Command {
	list := &cobra.Command{
		Use:   "approvals",
		Short: "List approvals",
		Args:  takes(0, 0),
	}
	state := list.Flags().String("state", "pending", "states to list, separated by commas; empty lists all")
	list.RunE = withApprover(func(ctx context.Context, c *client, _ []string) error { return listApprovals(ctx, c, *state) })
	list.AddCommand(&cobra.Command{
		Use: "show ID", ValidArgsFunction: completing(approvalIDs),
		Short: "Show one call with its exact arguments",
		Args:  takes(1, 1),
		RunE:  withApprover(showApproval),
	})

	approve := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve a held call, optionally with edited arguments",
		Long: "approve shows the arguments byte for byte, asks for confirmation, and approves exactly these arguments.\n\n" +
			"With --edit they are opened in $VISUAL or $EDITOR first, and with --arguments they are replaced with the contents of a file; the edited arguments are then shown and approved. " +
			"The policy is applied to edited arguments again: the call may require more approvals than before, or be forbidden.",
		Example: "  callyard approve appr_06b2t8m3c0w3v2q5n7k9a1d4fz\n  callyard approve appr_06b2t8m3c0w3v2q5n7k9a1d4fz --edit\n  callyard approve appr_06b2t8m3c0w3v2q5n7k9a1d4fz --arguments smaller.json --yes --reason \"half of it\"",
		Args:    takes(1, 1), ValidArgsFunction: completing(pendingIDs),
	}
	var o approveOptions
	f := approve.Flags()
	f.BoolVar(&o.yes, "yes", false, "approval without a prompt")
	f.StringVar(&o.reason, "reason", "", "reason, stored with the decision")
	f.BoolVar(&o.edit, "edit", false, "open the arguments in $VISUAL or $EDITOR first")
	f.StringVar(&o.file, "arguments", "", "file with a JSON object that replaces the arguments; - means standard input")
	approve.MarkFlagsMutuallyExclusive("edit", "arguments")
	approve.RunE = withApprover(func(ctx context.Context, c *client, args []string) error { return approveCall(ctx, c, args[0], o) })
	deny := &cobra.Command{Use: "deny ID", Short: "Deny a held call", Args: takes(1, 1), ValidArgsFunction: completing(pendingIDs)}
	reason := deny.Flags().String("reason", "", "reason, stored with the decision and shown to the requester")
	deny.RunE = withApprover(func(ctx context.Context, c *client, args []string) error {
		return decideApproval(ctx, c, args[0], decisionBody{Kind: "deny", Reason: *reason})
	})
	offer(list, "state", approvalStates...)
	commands := []*cobra.Command{list, approve, deny, permissionsCommand()}
	for _, cmd := range commands {
		cmd.PersistentFlags().String("approver-url", "", "address of the approver (CALLYARD_APPROVER_URL, default "+defaultApproverURL+" if the front door is on this machine)")
	}
	return commands
}

// withApprover is [withClient] for a client of the approver.
func withApprover(run asking) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return withClient(func(ctx context.Context, c *client, args []string) error {
			a, err := c.approver(textFlag(cmd, "approver-url"), textFlag(cmd, "key"))
			if err != nil {
				return err
			}
			return run(ctx, a, args)
		})(cmd, args)
	}
}

// asksApprover reports whether a command calls the approver: all that have --approver-url do, unless
// they also have --approver, which is then off.
func asksApprover(cmd *cobra.Command) bool {
	if choice := cmd.Flags().Lookup("approver"); choice != nil {
		return choice.Value.String() == "true"
	}
	return cmd.Flags().Lookup("approver-url") != nil
}

// approver returns a client for the approver at the address, with the key. If the address is empty,
// the environment or the default sets it. If the key is empty, it is CALLYARD_APPROVER_KEY, or else the
// key for the front door.
func (c *client) approver(address, key string) (*client, error) {
	a := *c
	a.flag, a.keySources = "--approver-url", "--key, CALLYARD_APPROVER_KEY, CALLYARD_KEY or CALLYARD_KEY_FILE"
	address = cmp.Or(address, os.Getenv("CALLYARD_APPROVER_URL"))
	if address == "" {
		if !c.local() {
			return nil, fail(exitUsage, "Set the address of the approver with --approver-url or CALLYARD_APPROVER_URL. The default %s is only for a front door on this machine, and the front door is at %s.", defaultApproverURL, c.base)
		}
		address = defaultApproverURL
	}
	var err error
	if a.base, err = baseURL(address, "--approver-url and CALLYARD_APPROVER_URL"); err != nil {
		return nil, err
	}
	if a.key, err = apiKey(cmp.Or(key, os.Getenv("CALLYARD_APPROVER_KEY"), c.key)); err != nil {
		return nil, err
	}
	return &a, a.connect()
}

// local reports whether the front door is at a loopback address. Only then is an API key sent to
// the default address of the approver: another program of this machine may listen there.
func (c *client) local() bool {
	u, err := url.Parse(c.base)
	return err == nil && httpguard.Loopback(u.Host)
}

// approvalItem holds the members of an approval that the commands use.
type approvalItem struct {
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	State     string `json:"state"`
	Requester struct {
		Name  string `json:"name"`
		Owner string `json:"owner"`
	} `json:"requester"`
	Server        string   `json:"server"`
	Tool          string   `json:"tool"`
	Level         int      `json:"risk_level"`
	Reasons       []string `json:"reasons"`
	Digest        string   `json:"arguments_digest"`
	Edited        bool     `json:"edited"`
	Needed        int      `json:"needed"`
	ApprovalCount int      `json:"approval_count"`
	ExpiresIn     int64    `json:"expires_in_ms"`
	Blocked       string   `json:"may_not_because"`
	Arguments     struct {
		Base64    string `json:"base64"`
		Forgotten string `json:"forgotten"`
	} `json:"arguments"`
	Decisions decisions `json:"decisions"`
	Restarts  []struct {
		At     time.Time `json:"at"`
		Reason string    `json:"reason"`
	} `json:"restarts"`
}

// decisions are the decisions about a held call, the oldest first.
type decisions []struct {
	By     string    `json:"by"`
	Kind   string    `json:"kind"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (ds decisions) rows() (rows [][]cell) {
	for _, d := range ds {
		rows = append(rows, cells(d.Kind, strings.TrimSpace(d.By+", "+d.At.UTC().Format(time.DateTime)+" "+d.Reason)))
	}
	return rows
}

// approvalStates lists the values of --state.
var approvalStates = []string{"pending", "approved", "denied", "expired", "revoked", "canceled", "running", "succeeded", "failed", "unknown"}

func listApprovals(ctx context.Context, c *client, state string) error {
	query := url.Values{}
	states := commaList(state)
	for _, one := range states {
		if err := oneOf("state", one, approvalStates...); err != nil {
			return err
		}
	}
	if len(states) > 0 {
		query.Set("state", strings.Join(states, ","))
	}
	all, err := readList[approvalItem](ctx, c, 0, func(_ int, cursor string) request {
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		return c.other(http.MethodGet, "/approvals?"+query.Encode(), nil)
	})
	if err != nil {
		return err
	}
	return all.print(c, "approvals", []string{"APPROVAL", "STATE", "SERVER", "TOOL", "RISK", "REQUESTED BY", "APPROVALS", "LEFT", "WHY"}, func(a *approvalItem) []cell {
		row := cells(a.ID, "", a.Server, a.Tool, "", a.Requester.Name, a.approvalCount(), a.timeLeft(), strings.Join(a.Reasons[:min(1, len(a.Reasons))], ""))
		row[1], row[4] = stateCell(a.State), riskCell(a.Level)
		return row
	}, "")
}

func (a *approvalItem) approvalCount() string {
	return strconv.Itoa(a.ApprovalCount) + " of " + strconv.Itoa(a.Needed)
}

func (a *approvalItem) timeLeft() string {
	if a.State != "pending" || a.ExpiresIn <= 0 {
		return ""
	}
	return (time.Duration(a.ExpiresIn) * time.Millisecond).Round(time.Second).String()
}

// readApproval returns an approval with the exact bytes that would run.
func readApproval(ctx context.Context, c *client, id string) (a approvalItem, args, raw []byte, err error) {
	if raw, err = c.report(ctx, c.other(http.MethodGet, "/approvals/"+urls.Segment(id), nil), &a); err != nil {
		return a, nil, nil, err
	}
	if args, err = base64.StdEncoding.DecodeString(a.Arguments.Base64); err != nil {
		return a, nil, nil, c.foreign()
	}
	return a, args, raw, nil
}

func showApproval(ctx context.Context, c *client, args []string) error {
	a, arguments, raw, err := readApproval(ctx, c, args[0])
	if err != nil {
		return err
	}
	if c.out.structured() {
		return c.out.document(raw)
	}
	return a.write(c.out, arguments)
}

// write prints the approval with its arguments byte for byte.
func (a *approvalItem) write(out screen, args []byte) error {
	rows := [][]cell{
		cells("approval", a.ID), {{text: "state"}, stateCell(a.State)}, cells("tool", a.Tool+" on "+a.Server), cells("requested by", a.Requester.Name), cells("for", a.Requester.Owner),
		cells("risk", riskCell(a.Level).text), cells("approvals", a.approvalCount()), cells("time left", a.timeLeft()), cells("why approval is required", risk.JoinReasons(a.Reasons)),
		cells("not for you", a.Blocked), cells("arguments", a.Digest),
	}
	rows = append(rows, a.Decisions.rows()...)
	for _, r := range a.Restarts {
		rows = append(rows, cells("restarted", r.At.UTC().Format(time.DateTime)+" "+r.Reason+" Earlier approvals are void."))
	}
	if err := out.sheet(rows...); err != nil {
		return err
	}
	title := "Arguments"
	if a.Edited {
		title = "Arguments, edited after the request"
	}
	if a.Arguments.Forgotten != "" {
		return out.section(title, a.Arguments.Forgotten)
	}
	return out.text("\n" + out.paint(bold, title) + " (" + size(len(args)) + ")\n" + exact(args) + "\n")
}

// exact escapes every character that a terminal would hide, move or draw like another character.
// An approver must see the exact bytes that run.
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
	// Arguments are the replacement arguments of a decision of kind edit, as the exact bytes to run.
	Arguments json.RawMessage `json:"-"`
}

func decideApproval(ctx context.Context, c *client, id string, d decisionBody) error {
	body, err := d.encode()
	if err != nil {
		return err
	}
	return show(ctx, c, c.other(http.MethodPost, "/approvals/"+urls.Segment(id)+"/decisions", body), func(a *approvalItem) error {
		if a.State == "pending" {
			return c.out.text(oneLine("Recorded: "+a.approvalCount()+" approvals; the call requires more.") + "\n")
		}
		return c.out.text(oneLine("Recorded: the call is "+a.State+".") + "\n")
	})
}
