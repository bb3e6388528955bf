package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/pkg/schema"
)

var (
	keyForm  = regexp.MustCompile(`cyk_[0-9A-Za-z]{49}`)
	hashForm = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
)

func TestANewKeyIsShownOnceWithItsEntry(t *testing.T) {
	plainEnvironment(t)
	stdout, stderr, code := typed(t, "", "keys", "new", "ci", "--owner", "build team", "--group", "dev,ops", "--group", "qa")
	if code != exitOK || stderr != "" || len(keyForm.FindAllString(stdout, -1)) != 1 {
		t.Fatalf("code %d, %q, %q", code, stdout, stderr)
	}
	golden(t, "keys-new", hashForm.ReplaceAllString(keyForm.ReplaceAllString(stdout, "KEY"), "HASH"))
}

func TestConfigEntryOfANewKeyAuthenticatesIt(t *testing.T) {
	plainEnvironment(t)
	owner := "O'Brien: \"x\" ${HOME} $${A} # é\t"
	stdout, _, code := typed(t, "", "keys", "new", "a: b", "--owner", owner, "--group", "[g]")
	if code != exitOK {
		t.Fatal(code)
	}
	file := filepath.Join(t.TempDir(), "callyard.yaml")
	if err := os.WriteFile(file, []byte(stdout[strings.Index(stdout, "front_door:"):]), 0o600); err != nil {
		t.Fatal(err)
	}
	var section struct {
		Keys []authn.Key `yaml:"keys"`
	}
	if _, err := config.Load(config.Source{Path: file}, map[string]any{"front_door": &section}); err != nil {
		t.Fatal(err)
	}
	keys, err := authn.NewKeys(section.Keys)
	if err != nil {
		t.Fatal(err)
	}
	got, err := keys.Authenticate(&http.Request{Header: http.Header{"X-Api-Key": {keyForm.FindString(stdout)}}})
	if err != nil {
		t.Fatal(err)
	}
	want := schema.Principal{Name: "a: b", Owner: owner, Groups: []string{"[g]"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the principal is another one (-want +got):\n%s", diff)
	}
}

func TestWithJSONAKeyComesWithItsEntry(t *testing.T) {
	plainEnvironment(t)
	stdout, _, code := typed(t, "", "keys", "new", "ci", "--json")
	var made struct {
		Key   string   `json:"key"`
		Entry keyEntry `json:"entry"`
	}
	if err := json.Unmarshal([]byte(stdout), &made); err != nil || code != exitOK {
		t.Fatalf("code %d, %v", code, err)
	}
	if made.Entry.Hash != authn.Hash(made.Key) || made.Entry.Name != "ci" {
		t.Errorf("the entry %+v does not belong to the key", made.Entry)
	}
}

func TestANameThatNoKeyMayHaveIsRefused(t *testing.T) {
	plainEnvironment(t)
	for _, name := range []string{"", authn.Local, strings.Repeat("n", 200)} {
		stdout, stderr, code := typed(t, "", "keys", "new", name)
		if code != exitUsage || stdout != "" || stderr == "" {
			t.Errorf("%q: code %d, %q, %q", name, code, stdout, stderr)
		}
	}
}
