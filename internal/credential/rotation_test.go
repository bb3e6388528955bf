package credential

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	oldKey = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	newKey = "YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlqYWI="
)

// keyFile is the key file of all processes of an installation.
type keyFile struct {
	t    *testing.T
	path string
}

func newKeyFile(t *testing.T, lines ...string) *keyFile {
	t.Helper()
	f := &keyFile{t, filepath.Join(t.TempDir(), "keys")}
	f.write(lines...)
	return f
}

// write replaces the file, as the documentation asks operators to.
func (f *keyFile) write(lines ...string) {
	f.t.Helper()
	next := f.path + ".new"
	err := os.WriteFile(next, []byte(strings.Join(lines, "\n")), 0o600)
	if err == nil {
		err = os.Rename(next, f.path)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// load returns the keys of a process that starts now.
func (f *keyFile) load() *Keys {
	f.t.Helper()
	k, err := LoadKeys(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	return k
}

func TestAProcessReadsItsKeyFileAgainForAKeyThatAnotherOneUses(t *testing.T) {
	f := newKeyFile(t, oldKey)
	running := f.load()
	f.write(newKey, oldKey)
	restarted := f.load()
	sealed, err := restarted.Seal([]byte("x"), "a")
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := running.Open(sealed, "a"); err != nil || string(plain) != "x" {
		t.Errorf("the process that was not restarted: %q, %v", plain, err)
	}
	before := f.load()
	f.write("not a key")
	other := newKeyFile(t, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDI=").load()
	if sealed, err = other.Seal([]byte("x"), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := before.Open(sealed, "a"); err == nil {
		t.Error("a row of a key that no file has is opened")
	}
	if sealed, err = before.Seal([]byte("x"), "a"); err != nil || !before.Newest(sealed) {
		t.Errorf("with a damaged file: %v", err)
	}
}

// TestTwoProcessesDoNotChangeTheKeyOfARowInTurns has one process that started before the order of the
// lines was changed.
func TestTwoProcessesDoNotChangeTheKeyOfARowInTurns(t *testing.T) {
	f := newKeyFile(t, oldKey, newKey)
	running := f.load()
	f.write(newKey, oldKey)
	sealed, err := f.load().Seal([]byte("x"), "a")
	if err != nil {
		t.Fatal(err)
	}
	if !running.Newest(sealed) {
		t.Error("the process that was not restarted would write the former key")
	}
}

func TestACredentialIsEncryptedWithTheNewestKeyAtItsUse(t *testing.T) {
	w, f := newTestServers(t), newKeyFile(t, oldKey)
	w.keys = f.load()
	former := KeyName(sealedBy(t, w.keys))
	b := w.book(t, nil)
	w.connect(t, b, "ada")
	for _, person := range []string{"ada", "bob"} {
		if err := b.SetSecret(t.Context(), "jira", person, "canary-secret"); err != nil {
			t.Fatal(err)
		}
	}
	f.write(newKey, oldKey)
	w.keys = f.load()
	newest := KeyName(sealedBy(t, w.keys))
	counts := func(want map[string]int) {
		t.Helper()
		if got, err := CountKeys(t.Context(), w.connection(t), nil); err != nil || !maps.Equal(got, want) {
			t.Errorf("rows by key: %v, %v, want %v", got, err, want)
		}
	}
	counts(map[string]int{former: 3})
	b = w.book(t, nil)
	for _, server := range []schema.ServerID{"crm", "jira"} {
		if _, err := b.Get(t.Context(), server, "ada", 0); err != nil {
			t.Error(err)
		}
	}
	counts(map[string]int{newest: 2, former: 1})
	f.write(newKey)
	w.keys = f.load()
	b = w.book(t, nil)
	if c, err := b.Get(t.Context(), "jira", "ada", 0); err != nil || c.Value != "canary-secret" {
		t.Errorf("without the former key: %v, %v", c, err)
	}
	if _, err := b.Get(t.Context(), "crm", "ada", 0); err != nil {
		t.Errorf("without the former key: %v", err)
	}
	_, err := b.Get(t.Context(), "jira", "bob", 0)
	required(t, "of a person who made no call since", err)
}

// TestARowWithALeaseKeepsItsKey reads a row while another process renews its token: that process
// could not store the token if the row changed.
func TestARowWithALeaseKeepsItsKey(t *testing.T) {
	w, f := newTestServers(t), newKeyFile(t, oldKey)
	w.keys = f.load()
	b := w.book(t, nil)
	w.connect(t, b, "ada")
	s := b.Server("crm")
	r, revision, err := b.read(t.Context(), s, "ada")
	if err != nil {
		t.Fatal(err)
	}
	r.Renewing = time.Now().Add(leased)
	sealed, err := b.seal(t.Context(), s, "ada", r)
	if err == nil {
		revision, err = b.rows.Replace(t.Context(), keyOf(s, "ada"), sealed, revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.write(newKey, oldKey)
	w.keys = f.load()
	if _, err := w.book(t, nil).Get(t.Context(), "crm", "ada", 0); err != nil {
		t.Fatal(err)
	}
	if _, now, err := b.read(t.Context(), s, "ada"); err != nil || now != revision {
		t.Errorf("the row has changed from %d to %d, %v", revision, now, err)
	}
}

// sealedBy returns bytes that the keys encrypt.
func sealedBy(t *testing.T, k *Keys) []byte {
	t.Helper()
	sealed, err := k.Seal([]byte("x"), "x")
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}
