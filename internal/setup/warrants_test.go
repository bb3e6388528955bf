package setup

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair writes a key pair and returns its files.
func pair(t *testing.T, name string) (private, public string) {
	t.Helper()
	dir := t.TempDir()
	private, public = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".pub.pem")
	if err := warrant.Write(warrant.Generate(), private, public); err != nil {
		t.Fatal(err)
	}
	return private, public
}

// signing returns a configuration with its own signing key.
func signing(keyFile string) *Config {
	return &Config{File: settings.File{Warrants: settings.Warrants{KeyFile: keyFile}}}
}

// runs reports whether a worker with this trust runs calls that the signer has signed.
func runs(t *testing.T, trust *warrant.Trust, s *warrant.Signer, how warrant.Decider, by string) bool {
	t.Helper()
	now := time.Now()
	rule := &risk.Approval{By: by, Groups: []string{"ops"}, Needed: 1}
	w, err := s.Sign(warrant.Claims{
		Requirement: rule.Requirement().String(),
		ApprovalID:  "a", CallID: "c", ToolDefinitionDigest: schema.Digest([]byte("d")), ArgumentsDigest: schema.Digest([]byte("{}")),
		Level: 2, How: how, Issued: now.UnixMilli(), Deadline: now.UnixMilli(),
	})
	if err != nil {
		return false
	}
	_, refusal := trust.Admit(w, &warrant.Use{ApprovalID: "a", CallID: "c", Definition: []byte("d"), Arguments: []byte("{}"), Level: 2, Rule: rule}, now)
	return refusal == nil
}

func TestEachRoleIsTrustedOnlyForItsOwnSignatures(t *testing.T) {
	door, doorPublic := pair(t, "door")
	people, peoplePublic := pair(t, "approver")
	workers := Config{}
	workers.Warrants = settings.Warrants{PeopleKeys: []string{peoplePublic}, CallerKeys: []string{doorPublic}}
	trust, err := workers.Trust()
	if err != nil {
		t.Fatal(err)
	}
	front, err := signing(door).Signer(warrant.Caller, warrant.Standing)
	if err != nil {
		t.Fatal(err)
	}
	approver, err := signing(people).Signer(warrant.People)
	if err != nil {
		t.Fatal(err)
	}
	key, err := warrant.LoadPrivate(door)
	if err != nil {
		t.Fatal(err)
	}
	stolen := warrant.NewSigner(key, warrant.Deciders()...)
	for _, c := range []struct {
		name string
		s    *warrant.Signer
		how  warrant.Decider
		by   string
		want bool
	}{
		{"the approver for people", approver, warrant.People, risk.ByGroups, true},
		{"a front door for the caller", front, warrant.Caller, risk.ByCaller, true},
		{"a front door for people", front, warrant.People, risk.ByGroups, false},
		{"a stolen key of a front door for people", stolen, warrant.People, risk.ByGroups, false},
		{"a stolen key of a front door of a standing yes", stolen, warrant.Standing, risk.ByGroups, false},
		{"the approver for the caller", approver, warrant.Caller, risk.ByCaller, false},
	} {
		if got := runs(t, trust, c.s, c.how, c.by); got != c.want {
			t.Errorf("%s: it runs: %v", c.name, got)
		}
	}
	workers.Warrants.StandingKeys = []string{doorPublic}
	if trust, err = workers.Trust(); err != nil || !runs(t, trust, front, warrant.Standing, risk.ByGroups) {
		t.Errorf("a standing yes that the operator trusts front doors for: %v", err)
	}
}

func TestWithoutKeysThereIsNoSignerAndNoTrust(t *testing.T) {
	var w Config
	s, err := w.Signer(warrant.Caller)
	trust, trustErr := w.Trust()
	if s != nil || err != nil || trustErr != nil || !trust.Empty() || w.checkWarrants() != nil {
		t.Errorf("%v, %v, %v", s, err, trustErr)
	}
}

func TestEveryKeyFileThatCannotBeReadIsNamed(t *testing.T) {
	private, public := pair(t, "k")
	w := Config{}
	w.Warrants = settings.Warrants{KeyFile: public, PeopleKeys: []string{private}, CallerKeys: []string{"missing.pem", public}, StandingKeys: []string{"missing too"}}
	err := w.checkWarrants()
	if err == nil {
		t.Fatal("no fault")
	}
	for _, want := range []string{"warrants.key_file: ", "warrants.people_keys: ", "contains a private key", "missing.pem", "missing too"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestUpMakesItsOwnKeyOnceAndKeepsIt(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	var first ed25519.PrivateKey
	for range 2 {
		c := Config{File: settings.Defaults()}
		c.Data = data
		if err := c.OwnKey(); err != nil {
			t.Fatal(err)
		}
		key, err := warrant.LoadPrivate(c.Warrants.KeyFile)
		if err != nil || first != nil && !first.Equal(key) {
			t.Fatalf("another key, %v", err)
		}
		first = key
		s, err := c.Signer(warrant.Deciders()...)
		if err != nil {
			t.Fatal(err)
		}
		trust, err := c.Trust()
		if err != nil || !runs(t, trust, s, warrant.People, risk.ByGroups) || !runs(t, trust, s, warrant.Caller, risk.ByCaller) || !runs(t, trust, s, warrant.Standing, risk.ByGroups) {
			t.Errorf("it does not count for everything: %v", err)
		}
	}
	if info, err := os.Stat(filepath.Join(data, ownKey)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if keys, err := warrant.LoadPublic(filepath.Join(data, ownPublicKey)); err != nil || !keys[0].Equal(first.Public()) {
		t.Errorf("the public half for other workers: %v", err)
	}
}

func TestUpSignsWithTheKeyThatIsConfigured(t *testing.T) {
	private, _ := pair(t, "mine")
	c := Config{File: settings.Defaults()}
	c.Data, c.Warrants.KeyFile = filepath.Join(t.TempDir(), "data"), private
	if err := c.OwnKey(); err != nil {
		t.Fatal(err)
	}
	s, err := c.Signer(warrant.Deciders()...)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := c.Trust()
	if err != nil || !runs(t, trust, s, warrant.People, risk.ByGroups) {
		t.Errorf("its own worker does not trust it: %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.Data, ownKey)); err == nil {
		t.Error("another key was made")
	}
	c.Warrants.KeyFile = filepath.Join(t.TempDir(), "missing.pem")
	if err := c.OwnKey(); err == nil || !strings.Contains(err.Error(), "warrants.key_file") {
		t.Errorf("a missing key: %v", err)
	}
}
