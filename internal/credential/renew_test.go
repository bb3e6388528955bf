package credential

import (
	"errors"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/pkg/schema"
)

// TestShortLivedTokensAreUsed uses a token that is renewed only in its last tenth.
func TestShortLivedTokensAreUsed(t *testing.T) {
	w := newTestServers(t)
	w.as.Life = 50 * time.Second
	b := w.book(t, nil)
	w.connect(t, b, "ada")
	now := time.Now()
	b.now = func() time.Time { return now }
	first, err := b.Get(t.Context(), "crm", "ada", 0)
	if err != nil || w.as.Issued() != 1 {
		t.Fatalf("%v, %d tokens issued", err, w.as.Issued())
	}
	b.now = func() time.Time { return now.Add(47 * time.Second) }
	next, err := b.Get(t.Context(), "crm", "ada", 0)
	if err != nil || next.Version == first.Version || w.as.Issued() != 2 {
		t.Errorf("near its end: %v, %d tokens issued", err, w.as.Issued())
	}
	// The lifetime of issued tokens is shorter than the polling interval.
	w.as.Life = time.Second
	last, err := b.Get(t.Context(), "crm", "ada", next.Version)
	if err != nil || last.Version == next.Version || w.as.Issued() != 3 {
		t.Errorf("one of a second: %v, %d tokens issued", err, w.as.Issued())
	}
}

// TestGrantSurvivesWrongClientSecret simulates an operator who corrects the settings.
func TestGrantSurvivesWrongClientSecret(t *testing.T) {
	w := newTestServers(t)
	b := w.book(t, nil)
	w.connect(t, b, "ada")
	old, err := b.Get(t.Context(), "crm", "ada", 0)
	if err != nil {
		t.Fatal(err)
	}
	client := b.servers["crm"].OAuth
	right := client.Secret
	client.Secret = func() (string, error) { return "wrong", nil }
	if _, err := b.Get(t.Context(), "crm", "ada", old.Version); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("a wrong secret: %v", err)
	}
	client.Secret = right
	client.Issuer = "https://else.example"
	_, err = b.Get(t.Context(), "crm", "ada", old.Version)
	required(t, "a grant of another issuer than the configured one", err)
	client.Issuer = w.as.URL
	if next, err := b.Get(t.Context(), "crm", "ada", old.Version); err != nil || next.Version == old.Version {
		t.Errorf("after the repair: %v", err)
	}
}

func TestOnlyAnEndedGrantIsForgotten(t *testing.T) {
	c := &oauth.Client{ID: "configured", MetadataURL: "https://callyard.example/connect/client.json"}
	for _, s := range []struct {
		code, client string
		want         bool
	}{
		{"invalid_grant", "configured", true},
		{"invalid_client", "configured", false},
		{"invalid_client", "https://callyard.example/connect/client.json", false},
		{"invalid_client", "registered", true},
		{"unauthorized_client", "registered", false},
		{"access_denied", "configured", false},
	} {
		g := &oauth.Grant{Client: oauth.Registration{ID: s.client}}
		if got := c.Ended(&oauth.Refused{Code: s.code}, g); got != s.want {
			t.Errorf("%s for %s: %v", s.code, s.client, got)
		}
	}
	if c.Ended(errors.New("away"), nil) || c.Ended(nil, nil) {
		t.Error("an error that is no refusal ends a grant")
	}
}
