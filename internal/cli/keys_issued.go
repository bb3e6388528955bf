package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// issuedKey is a key as the commands read it.
type issuedKey struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Tenant string   `json:"tenant"`
	Owner  string   `json:"owner"`
	Groups []string `json:"groups"`
	Role   string   `json:"role"`
	Scopes []string `json:"scopes"`
	Tools  []string `json:"tools"`
	Limits struct {
		Rate     float64 `json:"rate"`
		Burst    int     `json:"burst"`
		InFlight int     `json:"in_flight"`
	} `json:"limits"`
	Note      string    `json:"note"`
	Origin    string    `json:"origin"`
	ETag      string    `json:"etag"`
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	RotatedAt time.Time `json:"rotated_at"`
	LastUsed  time.Time `json:"last_used_at"`
	Secret    string    `json:"secret"`
	Former    []struct {
		Until time.Time `json:"until"`
	} `json:"former_secrets"`
}

// keyFlags holds the flags for the properties of a key.
type keyFlags struct {
	owner, note, role     string
	groups, scopes, tools []string
	rate                  float64
	burst, inFlight       int
	expires               time.Duration
}

func (f *keyFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.owner, "owner", "", "person or team that owns the key")
	flags.StringVar(&f.note, "note", "", "what the key is for")
	flags.StringSliceVar(&f.groups, "group", nil, "group of the key; repeatable")
	flags.StringVar(&f.role, "role", "", "a fixed set of scopes, instead of --scope: platform-admin, tenant-admin, developer, caller or auditor")
	flags.StringSliceVar(&f.scopes, "scope", nil, "scopes, which say what the key may do: tools:read, tools:list, tools:call, tools:call:SERVER, tools:call:@SET, calls:read, calls:read:all, approve, admin, admin:tenant; repeatable")
	flags.StringSliceVar(&f.tools, "tools", nil, "only tools that match SERVER/TOOL, with * and ?; repeatable")
	flags.Float64Var(&f.rate, "rate", 0, "calls a second that the key may make (default: no limit of its own)")
	flags.IntVar(&f.burst, "burst", 0, "calls that may arrive at once (default: the calls of one second at --rate)")
	flags.IntVar(&f.inFlight, "in-flight", 0, "calls of the key that may run at once (default: no limit of its own)")
	durationVar(flags, &f.expires, "expires", 0, "time from now until the key expires, such as 30d (default 90d)")
}

// expiryAfter returns the expiry of a key after the duration in, or nil if in is 0.
func expiryAfter(in time.Duration) (*time.Time, error) {
	if in == 0 {
		return nil, nil
	}
	if in < 0 {
		return nil, fail(exitUsage, "--expires must be positive, such as 30d.")
	}
	return new(time.Now().Add(in).UTC().Truncate(time.Second)), nil
}

// issuedKeyCommands returns the commands for keys that a running front door issues.
func issuedKeyCommands() []*cobra.Command {
	return []*cobra.Command{
		createKeyCommand(),
		{Use: "list", Short: "List the API keys of a running Callyard", Args: takes(0, 0), RunE: withClient(listKeys)},
		{Use: "show NAME", Short: "Show an API key by its name or id", Args: takes(1, 1), ValidArgsFunction: completing(keyNames), RunE: withClient(showKey)},
		updateKeyCommand(),
		rotateKeyCommand(),
		{Use: "revoke NAME", Short: "Revoke an API key", Args: takes(1, 1), ValidArgsFunction: completing(keyNames), RunE: withClient(revokeKey)},
	}
}

func createKeyCommand() *cobra.Command {
	var f keyFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an API key at a running Callyard",
		Long: "create creates a key and prints it once: Callyard stores only its hash. Every front door accepts the key within a second. " +
			"It cannot have scopes, tools or groups that your own key does not have.",
		Example: "  callyard keys create ci --role developer\n  callyard keys create nightly --scope tools:read --scope tools:call:files --owner \"build team\"",
		Args:    takes(1, 1),
	}
	f.add(cmd)
	tenant := cmd.Flags().String("tenant", "", "tenant of the key (default: that of your own key); only keys of the default tenant create keys of other tenants")
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		ends, err := expiryAfter(f.expires)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("tenant") && *tenant == "" {
			return fail(exitUsage, "--tenant must be the id of a tenant, such as billing: `callyard tenants` lists them.")
		}
		if (len(f.scopes) == 0) == (f.role == "") {
			return fail(exitUsage, "Set what the key may do with --role or --scope, such as --role developer, or --scope tools:read --scope tools:call.")
		}
		body := f.members(cmd, ends)
		body["name"] = args[0]
		if *tenant != "" {
			body["tenant"] = *tenant
		}
		return show(ctx, c, with2(c.api.CreateKeyWithBody, mediaJSON, content(marshal(body))), func(k *issuedKey) error {
			return c.printSecret(k, fmt.Sprintf("This is the API key %s (id %s); it is shown only once. It expires on %s.", k.Name, k.ID, k.ExpiresAt.UTC().Format("2006-01-02 15:04:05 MST")))
		})
	})
	return cmd
}

// printSecret prints the secret of a key, with the text about.
func (c *client) printSecret(k *issuedKey, about string) error {
	return c.out.text(c.out.paint(bold, k.Secret) + "\n\n" + oneLine(about) + "\n")
}

// members returns the members of the request body whose flags were set, including empty lists.
func (f *keyFlags) members(cmd *cobra.Command, ends *time.Time) map[string]any {
	body := map[string]any{}
	for _, m := range []struct {
		flag, member string
		value        any
	}{
		{"owner", "owner", f.owner}, {"note", "note", f.note}, {"group", "groups", f.groups}, {"role", "role", f.role},
		{"scope", "scopes", f.scopes}, {"tools", "tools", f.tools}, {"expires", "expires_at", ends},
	} {
		if cmd.Flags().Changed(m.flag) {
			body[m.member] = m.value
		}
	}
	if flags := cmd.Flags(); flags.Changed("rate") || flags.Changed("burst") || flags.Changed("in-flight") {
		body["limits"] = map[string]any{"rate": f.rate, "burst": f.burst, "in_flight": f.inFlight}
	}
	return body
}

func updateKeyCommand() *cobra.Command {
	var f keyFlags
	cmd := &cobra.Command{
		Use:     "update NAME",
		Short:   "Change the scopes, tools, limits, groups, note or expiry of an API key",
		Long:    "update changes only what you name with flags. The name and the secret stay. A list replaces the previous one; --tools '' allows all tools again. --rate, --burst and --in-flight replace all limits of the key; 0 means none.",
		Example: "  callyard keys update ci --scope tools:read --expires 30d",
		Args:    takes(1, 1), ValidArgsFunction: completing(keyNames),
	}
	f.add(cmd)
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		ends, err := expiryAfter(f.expires)
		if err != nil {
			return err
		}
		body := f.members(cmd, ends)
		if len(body) == 0 {
			return fail(exitUsage, "Name what to change with flags, such as --note or --expires.")
		}
		return c.withKey(ctx, args[0], func(k *issuedKey) error {
			return show(ctx, c, func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
				return c.api.UpdateKeyWithBody(ctx, k.ID, &callyard.UpdateKeyParams{IfMatch: &k.ETag}, mediaJSON, bytes.NewReader(marshal(body)), edit...)
			}, func(k *issuedKey) error { return c.out.text(oneLine("The API key "+k.Name+" was changed.") + "\n") })
		})
	})
	return cmd
}

func rotateKeyCommand() *cobra.Command {
	var grace, expires time.Duration
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Give an API key a new secret",
		Long: "rotate prints the new secret once. The key keeps its id, calls and limits. The previous secret is accepted for the time of --grace, " +
			"so that you can update clients one by one.",
		Example: "  callyard keys rotate ci --grace 1h --expires 90d",
		Args:    takes(1, 1), ValidArgsFunction: completing(keyNames),
	}
	durationVar(cmd.Flags(), &grace, "grace", 24*time.Hour, "how long the previous secret stays valid, at most 7d; 0 ends all previous secrets at once")
	durationVar(cmd.Flags(), &expires, "expires", 0, "time from now until the key expires (default: as before)")
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		ends, err := expiryAfter(expires)
		if err != nil {
			return err
		}
		seconds := int64(grace / time.Second)
		return c.withKey(ctx, args[0], func(k *issuedKey) error {
			return show(ctx, c, with3(c.api.RotateKey, k.ID, &callyard.RotateKeyParams{IfMatch: &k.ETag}, callyard.APIKeyRotation{GraceSeconds: &seconds, ExpiresAt: ends}), func(k *issuedKey) error {
				text := fmt.Sprintf("This is the new secret of the API key %s (id %s); it is shown only once.", k.Name, k.ID)
				if n := len(k.Former); n > 0 {
					text += " The previous secret is accepted until " + k.Former[n-1].Until.Format(time.DateTime) + " UTC."
				}
				return c.printSecret(k, text)
			})
		})
	})
	return cmd
}

func readKeys(ctx context.Context, c *client) (*list[issuedKey], error) {
	return readList[issuedKey](ctx, c, 0, func(int, string) request { return c.api.ListKeys })
}

func keyNames(ctx context.Context, c *client, _ []string) ([]string, error) {
	all, err := readKeys(ctx, c)
	return namesOf(all, err, func(one *issuedKey) string { return one.Name })
}

func listKeys(ctx context.Context, c *client, _ []string) error {
	all, err := readKeys(ctx, c)
	if err != nil {
		return err
	}
	return all.print(c, "keys", []string{"NAME", "ID", "OWNER", "ROLE OR SCOPES", "EXPIRES", "LAST USED", "ORIGIN"}, func(k *issuedKey) []cell {
		expires := cell{text: dayOf(k.ExpiresAt)}
		if !k.ExpiresAt.IsZero() && k.ExpiresAt.Before(time.Now()) {
			expires.paint = red
		}
		row := cells(k.Name, k.ID, k.Owner, cmp.Or(k.Role, strings.Join(k.Scopes, " ")), "", minuteOf(k.LastUsed), k.Origin)
		row[4] = expires
		return row
	}, "")
}

func dayOf(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Format(time.DateOnly)
}

func minuteOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format("2006-01-02 15:04")
}

// withKey finds a key by its name or id.
func (c *client) withKey(ctx context.Context, name string, use func(*issuedKey) error) error {
	all, err := readKeys(ctx, c)
	if err != nil {
		return err
	}
	for i := range all.items {
		if k := &all.items[i]; k.Name == name || k.ID == name {
			return use(k)
		}
	}
	return c.missing("There is no API key %s: `callyard keys list` lists the keys.", oneLine(name))
}

func showKey(ctx context.Context, c *client, args []string) error {
	return c.withKey(ctx, args[0], func(k *issuedKey) error {
		return show(ctx, c, with(c.api.GetKey, k.ID), func(k *issuedKey) error {
			return c.out.sheet(
				cells("name", k.Name), cells("id", k.ID), cells("tenant", k.Tenant), cells("owner", k.Owner), cells("groups", strings.Join(k.Groups, " ")), cells("role", k.Role), cells("scopes", strings.Join(k.Scopes, " ")), cells("tools", strings.Join(k.Tools, " ")),
				cells("limits", k.limits()), cells("note", k.Note), cells("origin", k.Origin), cells("made", strings.TrimSpace(minuteOf(k.CreatedAt)+" "+k.CreatedBy)), cells("rotated", minuteOf(k.RotatedAt)), cells("expires", dayOf(k.ExpiresAt)), cells("last used", minuteOf(k.LastUsed)),
			)
		})
	})
}

// limits describes the limits of the key.
func (k *issuedKey) limits() string {
	var all []string
	if k.Limits.Rate > 0 {
		all = append(all, fmt.Sprintf("%g calls a second", k.Limits.Rate))
	}
	if k.Limits.Burst > 0 {
		all = append(all, fmt.Sprintf("%d in a burst", k.Limits.Burst))
	}
	if k.Limits.InFlight > 0 {
		all = append(all, fmt.Sprintf("%d at once", k.Limits.InFlight))
	}
	return strings.Join(all, ", ")
}

func revokeKey(ctx context.Context, c *client, args []string) error {
	return c.withKey(ctx, args[0], func(k *issuedKey) error {
		return show(ctx, c, with2(c.api.RevokeKey, k.ID, &callyard.RevokeKeyParams{IfMatch: &k.ETag}), func(*struct{}) error {
			return c.out.text(oneLine("The API key "+k.Name+" was revoked.") + "\n")
		})
	})
}
