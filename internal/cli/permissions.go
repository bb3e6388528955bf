package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/store/ledger"
)

// permissionsCommand lists and manages the permissions that allow calls to run again without
// approval. It calls the approver.
func permissionsCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "permissions",
		Short: "List and revoke standing permissions",
		Long: "permissions lists standing permissions (\"Approve and remember\"): matching calls run without a new approval, until a time and up to a number of calls. " +
			"`permissions remove` revokes one: matching calls are held again.",
		Example: "  callyard permissions\n  callyard permissions remove perm_06b2t8m3c0w3v2q5n7k9a1d4fz --reason \"no longer needed\"",
		Args:    takes(0, 0),
	}
	all := list.Flags().Bool("all", false, "list expired, used up and revoked permissions too")
	list.RunE = withApprover(func(ctx context.Context, c *client, _ []string) error {
		return listPermissions(ctx, c, *all, time.Now())
	})
	remove := &cobra.Command{
		Use: "remove ID", Aliases: []string{"revoke"}, Short: "Revoke a permission", Args: takes(1, 1), ValidArgsFunction: completing(permissionIDs),
	}
	reason := remove.Flags().String("reason", "", "reason, stored with the decision")
	remove.RunE = withApprover(func(ctx context.Context, c *client, args []string) error {
		return removePermission(ctx, c, args[0], *reason)
	})
	list.AddCommand(remove)
	return list
}

// permissionItem holds the members of a permission that the commands use.
type permissionItem struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Requester struct {
		Name string `json:"name"`
	} `json:"requester"`
	Server  string         `json:"server"`
	Tool    string         `json:"tool"`
	By      string         `json:"given_by"`
	Until   time.Time      `json:"until"`
	MaxUses int            `json:"max_uses"`
	Uses    int            `json:"uses"`
	Pattern ledger.Pattern `json:"pattern"`
}

// readPermissions fetches the permissions that concern the caller.
func readPermissions(ctx context.Context, c *client) (*list[permissionItem], error) {
	return readList[permissionItem](ctx, c, 0, func(int, string) request { return c.other(http.MethodGet, "/permissions", nil) })
}

func listPermissions(ctx context.Context, c *client, all bool, now time.Time) error {
	known, err := readPermissions(ctx, c)
	if err != nil {
		return err
	}
	shown := &list[permissionItem]{raw: []json.RawMessage{}}
	for i, p := range known.items {
		if all || p.State == "good" {
			shown.raw, shown.items = append(shown.raw, known.raw[i]), append(shown.items, p)
		}
	}
	return shown.print(c, "permissions", []string{"PERMISSION", "STATE", "FOR", "SERVER", "TOOL", "GIVEN BY", "USES", "LEFT", "WITH"}, func(p *permissionItem) []cell {
		state, left := cell{p.State, red}, ""
		if p.State == "good" {
			state.paint, left = green, p.Until.Sub(now).Round(time.Second).String()
		}
		uses := strconv.Itoa(p.Uses)
		if p.MaxUses > 0 {
			uses += " of " + strconv.Itoa(p.MaxUses)
		}
		row := cells(p.ID, "", p.Requester.Name, p.Server, p.Tool, p.By, uses, left, p.pattern())
		row[1] = state
		return row
	}, "")
}

// pattern describes the arguments that the permission covers.
func (p *permissionItem) pattern() string {
	switch p.Pattern.Kind {
	case ledger.AnyArguments:
		return "any arguments"
	case ledger.ExactArguments:
		return "the same arguments"
	}
	words := make([]string, len(p.Pattern.Values))
	for i, v := range p.Pattern.Values {
		words[i] = v.Pointer
	}
	return "the same " + strings.Join(words, ", ")
}

func removePermission(ctx context.Context, c *client, id, reason string) error {
	body, err := json.Marshal(struct {
		Reason string `json:"reason,omitempty"`
	}{reason})
	if err != nil {
		return fmt.Errorf("encoding the reason: %w", err)
	}
	return show(ctx, c, c.other(http.MethodPost, "/permissions/"+urls.Segment(id)+"/revocations", body), func(p *permissionItem) error {
		return c.out.text(oneLine("The permission is "+p.State+": calls of "+p.Tool+" on "+p.Server+" by "+p.Requester.Name+" are held again.") + "\n")
	})
}
