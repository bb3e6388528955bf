package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/warrant"
)

var warrantKeyForm = regexp.MustCompile(`wk_[0-9a-f]{20}`)

func TestWarrantKeyPairIsWrittenWithSetupNotes(t *testing.T) {
	plainEnvironment(t)
	t.Chdir(t.TempDir())
	stdout, stderr, code := typed(t, "", "keys", "warrant", "approver")
	if code != exitOK || stderr != "" {
		t.Fatalf("code %d, %q, %q", code, stdout, stderr)
	}
	key, err := warrant.LoadPrivate("approver.pem")
	if err != nil {
		t.Fatal(err)
	}
	public, err := warrant.LoadPublic("approver.pub.pem")
	if err != nil || len(public) != 1 || !public[0].Equal(key.Public()) {
		t.Fatalf("the halves do not fit: %v", err)
	}
	if id := warrantKeyForm.FindString(stdout); id != warrant.KeyID(public[0]) {
		t.Errorf("it names the key %q", id)
	}
	private, err := os.ReadFile("approver.pem")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(private)), "\n") {
		if strings.Contains(stdout, line) {
			t.Error("the private key was printed")
		}
	}
}

func TestWarrantKeyTextMatchesGoldenFile(t *testing.T) {
	plainEnvironment(t)
	dir := t.TempDir()
	stdout, _, code := typed(t, "", "keys", "warrant", filepath.Join(dir, "approver"))
	if code != exitOK {
		t.Fatal(code)
	}
	golden(t, "keys-warrant", strings.ReplaceAll(warrantKeyForm.ReplaceAllString(stdout, "KEY"), dir+string(filepath.Separator), ""))
}

func TestAPairOfWarrantKeysIsNeverWrittenOver(t *testing.T) {
	plainEnvironment(t)
	name := filepath.Join(t.TempDir(), "k")
	stdout, _, code := typed(t, "", "keys", "warrant", name, "--json")
	var made struct {
		KeyID   string `json:"key_id"`
		Private string `json:"private_key_file"`
		Public  string `json:"public_key_file"`
	}
	if err := json.Unmarshal([]byte(stdout), &made); err != nil || code != exitOK || made.Private != name+".pem" || made.Public != name+".pub.pem" || !warrantKeyForm.MatchString(made.KeyID) {
		t.Fatalf("code %d, %v, %+v", code, err, made)
	}
	before, err := os.ReadFile(made.Private)
	if err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := typed(t, "", "keys", "warrant", name); code != exitUsage || stdout != "" || !strings.Contains(stderr, "already exists") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	if after, err := os.ReadFile(made.Private); err != nil || string(after) != string(before) {
		t.Errorf("the key has changed: %v", err)
	}
	if _, stderr, code := typed(t, "", "keys", "warrant", ""); code != exitUsage || stderr == "" {
		t.Errorf("no name: code %d, %q", code, stderr)
	}
}
