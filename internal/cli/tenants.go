package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
		row := cells(t.ID, decimal(t.Servers.Seen), "", "", "", decimal(t.Held), "", "", decimal(t.Keys), decimal(len(t.Sets)), "", decimal(t.Limits.Weight), retentionOf(t), receiversOf(t))
		if u := t.Usage; u != nil {
			row[2].text, row[3].text, row[4].text = decimal(u.Calls), decimal(u.Failed), decimal(u.Denied)
		}
		if t.Waiting != nil {
			row[6].text = decimal(*t.Waiting)
		}
		if f := t.InFlight; f != nil {
			row[7].text = decimal(f.Calls)
		}
		if t.Policy.Own {
			row[10].text = decimal(t.Policy.Rules)
		}
		return row
	}, "")
}

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
	all := slices.Clone(t.Receivers.Hosts)
	if n := t.Receivers.SlackChannels; n > 0 {
		all = append(all, countOf(int(n), "channel in Slack", "channels in Slack"))
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
			cells("policy", policy), cells("weight", decimal(t.Limits.Weight)), cells("receivers", receiversOf(t)), cells("API keys", decimal(t.Keys)+" made at run time"),
			cells("held now", decimal(t.Held)),
		}
		if n, b := t.Limits.Nominal, t.Limits.Borrow; n != nil && b != nil {
			rows = append(rows, cells("calls in flight", fmt.Sprintf("%s of its own, %s borrowed at most", decimal(*n), decimal(*b))))
		}
		if f := t.InFlight; f != nil {
			rows = append(rows, cells("in flight now", fmt.Sprintf("%s, %s of them borrowed; %s lent to others", decimal(f.Calls), decimal(f.Borrowed), decimal(f.Lent))))
		}
		if kept := retentionOf(t); kept != "" {
			rows = append(rows, cells("retention", kept+" after the end of a call"))
		}
		if t.Waiting != nil {
			rows = append(rows, cells("waiting", decimal(*t.Waiting)))
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
