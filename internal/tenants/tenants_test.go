package tenants_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

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

func TestOnlyTenantsWithARetentionSettingHaveOne(t *testing.T) {
	b := tenants.New(settings.Tenants{"red": {Retention: time.Hour}, "default": {Retention: 2 * time.Hour}, "blue": {}})
	for tenant, want := range map[schema.TenantID]time.Duration{"red": time.Hour, "": 2 * time.Hour, "default": 2 * time.Hour, "blue": 0, "green": 0} {
		if got := b.Retentions().Of(tenant); got != want {
			t.Errorf("%q: %s, want %s", tenant, got, want)
		}
	}
	if got := (*tenants.Book)(nil).Retentions().Of("red"); got != 0 {
		t.Errorf("without the section: %s", got)
	}
}

func TestApprovalRequestsUseOnlyTheTenantsChannels(t *testing.T) {
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

func TestNotificationTargetsAreShownWithoutSecrets(t *testing.T) {
	platform := tenants.DestinationsOf(&settings.Approver{
		Notify: settings.Notify{URLs: []string{"https://user:secret@hooks.example.com:8443/secret?token=secret#secret", "https://hooks.example.com:8443/other", "https://a.example.com"}},
		Slack:  settings.Slack{BotTokenFile: "token", Channels: map[string]string{"ops": "C1", "dev": "C2"}, DefaultChannel: "C2"},
	})
	if want := (tenants.Destinations{Hosts: []string{"a.example.com", "hooks.example.com:8443"}, SlackChannels: 2}); !reflect.DeepEqual(platform, want) {
		t.Errorf("%+v", platform)
	}
	if got := tenants.DestinationsOf(&settings.Approver{Slack: settings.Slack{Channels: map[string]string{"ops": "C1"}}}); got.SlackChannels != 0 {
		t.Errorf("without an app: %+v", got)
	}
	b := tenants.New(settings.Tenants{"red": {Servers: []string{"r-*"}, Notify: settings.TenantNotify{URLs: []string{"https://red.example.com/x"}, SlackDefaultChannel: "C3"}}, "blue": {Servers: []string{"*"}}})
	own := tenants.New(settings.Tenants{"default": {Servers: []string{"s"}, Notify: settings.TenantNotify{URLs: []string{"https://home.example.com"}}}})
	for _, c := range []struct {
		book   *tenants.Book
		tenant schema.TenantID
		want   tenants.Destinations
	}{
		{nil, "red", platform}, {b, "default", platform}, {b, "", platform}, {b, "blue", tenants.Destinations{}}, {b, "green", tenants.Destinations{}},
		{b, "red", tenants.Destinations{Hosts: []string{"red.example.com"}, SlackChannels: 1}}, {own, "default", tenants.Destinations{Hosts: []string{"home.example.com"}, SlackChannels: 2}},
	} {
		if got := c.book.Told(c.tenant, platform); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q is told at %+v", c.tenant, got)
		}
	}
	if !slices.Equal(b.IDs(), []schema.TenantID{"default", "blue", "red"}) || !slices.Equal(own.IDs(), []schema.TenantID{"default"}) || !slices.Equal((*tenants.Book)(nil).IDs(), []schema.TenantID{"default"}) {
		t.Errorf("%v, %v", b.IDs(), own.IDs())
	}
	if b.Servers("default") != nil || !slices.Equal(b.Servers("red"), []string{"r-*"}) || !slices.Equal(own.Servers(""), []string{"s"}) || (*tenants.Book)(nil).Servers("red") != nil {
		t.Error("the patterns")
	}
}
