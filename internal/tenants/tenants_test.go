package tenants_test

import (
	"testing"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/schema"
)

func TestATenantSeesTheServersThatItsEntryNames(t *testing.T) {
	of := settings.Tenants{"red": {Servers: []string{"red-*", "search"}}, "blue": {Servers: []string{"search"}}}
	b, narrow := tenants.New(of), tenants.New(settings.Tenants{"default": {Servers: []string{"search"}}, "red": {Servers: []string{"*"}}})
	for _, c := range []struct {
		book   *tenants.Book
		tenant schema.TenantID
		server schema.ServerID
		sees   bool
	}{
		{b, "red", "red-1", true}, {b, "blue", "red-1", false}, {b, "red", "search", true}, {b, "blue", "search", true},
		{b, "red", "new", false}, {b, "", "new", true}, {b, "default", "red-1", true}, {b, "green", "search", false},
		{narrow, "", "search", true}, {narrow, "default", "new", false}, {narrow, "red", "new", true}, {nil, "anybody", "anything", true},
	} {
		if got := c.book.Sees(c.tenant, c.server); got != c.sees {
			t.Errorf("%q sees %s: %t", c.tenant, c.server, got)
		}
	}
	if tenants.New(nil) != nil || b.Check("green") == nil || b.Check("red") != nil || b.Check("") != nil || (*tenants.Book)(nil).Check("green") != nil {
		t.Error("which tenants are known")
	}
	if !b.Apart("red") || b.Apart("") || !narrow.Apart("default") || (*tenants.Book)(nil).Apart("red") {
		t.Error("who sees less than everything")
	}
}

func TestOnlyTenantsWithNominalOrBorrowHaveLimits(t *testing.T) {
	b := tenants.New(settings.Tenants{"red": {Limits: settings.TenantLimits{Nominal: 2, Weight: 3}}, "blue": {Limits: settings.TenantLimits{Borrow: 1}}, "green": {Limits: settings.TenantLimits{Weight: 5}}})
	if l := b.Limits(); len(l) != 2 || l["red"].Nominal != 2 || l["blue"].Borrow != 1 {
		t.Errorf("%+v", l)
	}
	if l := (*tenants.Book)(nil).Limits(); l != nil {
		t.Errorf("without the section: %+v", l)
	}
}

func TestCallsAreAskedAboutInChannelsOfTheirTenantOnly(t *testing.T) {
	platform := &settings.Slack{Channels: map[string]string{"ops": "C1"}, DefaultChannel: "C2"}
	b := tenants.New(settings.Tenants{"red": {Notify: settings.TenantNotify{SlackChannels: map[string]string{"ops": "C3"}}}, "blue": {}})
	for _, c := range []struct {
		tenant      schema.TenantID
		group, want string
	}{{"", "ops", "C1"}, {"default", "x", "C2"}, {"red", "ops", "C3"}, {"red", "x", ""}, {"blue", "ops", ""}, {"green", "ops", ""}} {
		if got := b.SlackChannel(c.tenant, c.group, platform); got != c.want {
			t.Errorf("%s of %q: %q", c.group, c.tenant, got)
		}
	}
	if (*tenants.Book)(nil).SlackChannel("red", "ops", platform) != "C1" {
		t.Error("without the section")
	}
}
