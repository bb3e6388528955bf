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

	"github.com/callyard/callyard/internal/ledger"
)

// permissionsCommand looks after what people allowed to run again without a question.
// It talks to the approver.
func permissionsCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "permissions",
		Short: "List what may run again without a question, or take it back",
		Long: "permissions lists what somebody allowed when approving a call: calls like it run without a question, until a time and for a number of calls. " +
			"`permissions remove` takes one back: calls like it are held again.",
		Example: "  callyard permissions\n  callyard permissions remove perm_06b2t8m3c0w3v2q5n7k9a1d4fz --reason \"no longer needed\"",
		Args:    takes(0, 0),
	}
	all := list.Flags().Bool("all", false, "those that are over, used up or revoked as well")
	list.RunE = withApprover(func(cmd *cobra.Command, c *client, _ []string) error {
		return c.listPermissions(cmd.Context(), *all, time.Now())
	})
	remove := &cobra.Command{
		Use: "remove ID", Aliases: []string{"revoke"}, Short: "Take a permission back", Args: takes(1, 1), ValidArgsFunction: completing(permissionIDs),
	}
	reason := remove.Flags().String("reason", "", "why, for the record")
	remove.RunE = withApprover(func(cmd *cobra.Command, c *client, args []string) error {
		return c.removePermission(cmd.Context(), args[0], *reason)
	})
	list.AddCommand(remove)
	return list
}

// permissionItem is what the commands read of a permission.
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

// permissions asks for the permissions that concern the caller.
func (c *client) permissions(ctx context.Context) (items []permissionItem, raws []json.RawMessage, err error) {
	var page struct {
		Permissions []json.RawMessage `json:"permissions"`
	}
	if _, err := c.report(ctx, c.other(http.MethodGet, "/permissions", nil), &page); err != nil {
		return nil, nil, err
	}
	for _, raw := range page.Permissions {
		var p permissionItem
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, nil, c.foreign()
		}
		items, raws = append(items, p), append(raws, raw)
	}
	return items, raws, nil
}

func (c *client) listPermissions(ctx context.Context, all bool, now time.Time) error {
	items, raws, err := c.permissions(ctx)
	if err != nil {
		return err
	}
	shown := []json.RawMessage{}
	var rows [][]cell
	for i := range items {
		p := &items[i]
		if !all && p.State != "good" {
			continue
		}
		shown = append(shown, raws[i])
		state, left := cell{p.State, green}, ""
		if p.State == "good" {
			left = p.Until.Sub(now).Round(time.Second).String()
		} else {
			state.paint = red
		}
		uses := strconv.Itoa(p.Uses)
		if p.MaxUses > 0 {
			uses += " of " + strconv.Itoa(p.MaxUses)
		}
		rows = append(rows, []cell{{text: p.ID}, state, {text: p.Requester.Name}, {text: p.Server}, {text: p.Tool}, {text: p.By}, {text: uses}, {text: left}, {text: p.pattern()}})
	}
	if c.json {
		text, err := json.Marshal(map[string]any{"permissions": shown})
		if err != nil {
			return fmt.Errorf("encoding the permissions: %w", err)
		}
		return c.out.raw(text)
	}
	return c.out.table([]string{"PERMISSION", "STATE", "FOR", "SERVER", "TOOL", "GIVEN BY", "USES", "LEFT", "WITH"}, rows)
}

// pattern is which arguments the permission is for.
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

func (c *client) removePermission(ctx context.Context, id, reason string) error {
	body, err := json.Marshal(struct {
		Reason string `json:"reason,omitempty"`
	}{reason})
	if err != nil {
		return fmt.Errorf("encoding the reason: %w", err)
	}
	var p permissionItem
	raw, err := c.report(ctx, c.other(http.MethodPost, "/permissions/"+segment(id)+"/revocations", body), &p)
	if err != nil {
		return err
	}
	if c.json {
		return c.out.raw(raw)
	}
	return c.out.text(oneLine("The permission is "+p.State+": calls of "+p.Tool+" on "+p.Server+" by "+p.Requester.Name+" are held again.") + "\n")
}
