package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/config"
)

// tenantsCommand lists the tenants of a running Callyard.
func tenantsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenants",
		Short: "List tenants, and what each of them sees and uses",
		Long: "tenants lists the tenants of the configuration: the servers and sets that each sees, its policy, weight, retention and API keys, its calls of the last 24 hours, and the calls that wait or are in flight now. " +
			"Administrators and auditors of the default tenant see all tenants, those of another one see their own.",
		Example: "  callyard tenants\n  callyard tenants show billing",
		Args:    takes(0, 0),
		RunE:    withClient(listTenants),
	}
	cmd.AddCommand(
		&cobra.Command{Use: "show TENANT", Short: "Show a tenant", Args: takes(1, 1), ValidArgsFunction: completing(tenantIDs), RunE: withClient(showTenant)},
		eraseTenantCommand(),
	)
	return cmd
}

func readTenants(ctx context.Context, c *client) (*list[callyard.Tenant], error) {
	return readList[callyard.Tenant](ctx, c, 0, func(int, string) request { return c.api.ListTenants })
}

func tenantIDs(ctx context.Context, c *client, _ []string) ([]string, error) {
	all, err := readTenants(ctx, c)
	return namesOf(all, err, func(one *callyard.Tenant) string { return one.ID })
}

func listTenants(ctx context.Context, c *client, _ []string) error {
	all, err := readTenants(ctx, c)
	if err != nil {
		return err
	}
	return all.print(c, "tenants", []string{"TENANT", "SERVERS", "CALLS 24H", "FAILED", "DENIED", "HELD NOW", "WAITING", "IN FLIGHT", "KEYS", "SETS", "RULES", "WEIGHT", "RETENTION", "RECEIVERS"}, func(t *callyard.Tenant) []cell {
		row := cells(t.ID, formatInt(t.Servers.Seen), "", "", "", formatInt(t.Held), "", "", formatInt(t.Keys), formatInt(len(t.Sets)), "", formatInt(t.Limits.Weight), retentionOf(t), receiversOf(t))
		if u := t.Usage; u != nil {
			row[2].text, row[3].text, row[4].text = formatInt(u.Calls), formatInt(u.Failed), formatInt(u.Denied)
		}
		if t.Waiting != nil {
			row[6].text = formatInt(*t.Waiting)
		}
		if f := t.InFlight; f != nil {
			row[7].text = formatInt(f.Calls)
		}
		if t.Policy.Own {
			row[10].text = formatInt(t.Policy.Rules)
		}
		return row
	}, "")
}

// formatInt formats an integer.
func formatInt[T ~int | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// retentionOf formats the configured retention of the payloads of the tenant's calls. It returns ""
// if the platform's retention applies.
func retentionOf(t *callyard.Tenant) string {
	if t.RetentionSeconds == nil {
		return ""
	}
	return config.Duration(time.Duration(*t.RetentionSeconds) * time.Second).String()
}

// receiversOf lists the channels that notify people of the tenant about approvals.
func receiversOf(t *callyard.Tenant) string {
	all := append([]string{}, t.Receivers.Hosts...)
	switch n := t.Receivers.SlackChannels; n {
	case 0:
	case 1:
		all = append(all, "1 channel in Slack")
	default:
		all = append(all, fmt.Sprintf("%d channels in Slack", n))
	}
	return strings.Join(all, ", ")
}

func showTenant(ctx context.Context, c *client, args []string) error {
	return show(ctx, c, with(c.api.GetTenant, args[0]), func(t *callyard.Tenant) error {
		policy := "that of the platform"
		if t.Policy.Own {
			policy = fmt.Sprintf("that of the platform, and its own (rules: %d)", t.Policy.Rules)
		}
		rows := [][]cell{
			cells("tenant", t.ID), cells("servers", cmp.Or(strings.Join(t.Servers.Patterns, " "), "all")), cells("sees now", count(int(t.Servers.Seen), "server")), cells("sets", strings.Join(t.Sets, " ")),
			cells("policy", policy), cells("weight", formatInt(t.Limits.Weight)), cells("receivers", receiversOf(t)), cells("API keys", formatInt(t.Keys)+" made at run time"),
			cells("held now", formatInt(t.Held)),
		}
		if n, b := t.Limits.Nominal, t.Limits.Borrow; n != nil && b != nil {
			rows = append(rows, cells("calls in flight", fmt.Sprintf("%s of its own, %s borrowed at most", formatInt(*n), formatInt(*b))))
		}
		if f := t.InFlight; f != nil {
			rows = append(rows, cells("in flight now", fmt.Sprintf("%s, %s of them borrowed; %s lent to others", formatInt(f.Calls), formatInt(f.Borrowed), formatInt(f.Lent))))
		}
		if kept := retentionOf(t); kept != "" {
			rows = append(rows, cells("retention", kept+" after the end of a call"))
		}
		if t.Waiting != nil {
			rows = append(rows, cells("waiting", formatInt(*t.Waiting)))
		}
		if u := t.Usage; u != nil {
			rows = append(rows, cells("calls 24h", fmt.Sprintf("%d: %d failed, %d denied, %d expired, %d unknown, %d not ended; %s, %d held", u.Calls, u.Failed, u.Denied, u.Expired, u.Unknown, u.Unfinished, count(int(u.ToolErrors), "tool error"), u.Held)))
			if err := c.noteCounted(u.Complete); err != nil {
				return err
			}
		} else {
			rows = append(rows, cells("calls 24h", "usage cannot be read now"))
		}
		return c.out.sheet(rows...)
	})
}
