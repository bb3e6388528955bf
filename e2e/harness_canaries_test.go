package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
)

// canaries are secrets that must not appear in any searched place.
type canaries struct {
	mu    sync.Mutex
	names []string
	forms map[string][][]byte // by name
	said  bytes.Buffer        // all responses
}

func newCanaries() *canaries { return &canaries{forms: map[string][][]byte{}} }

// fresh creates a canary whose characters differ in every encoding.
func (c *canaries) fresh(name string) string {
	secret := "cnry/" + rand.Text() + "+="
	c.add(name, secret)
	return secret
}

// add adds a secret from another source.
func (c *canaries) add(name, secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, name)
	c.forms[name] = formsOf(secret)
}

// formsOf returns the secret itself, in hex, URL-encoded, and in base64 at each of the three
// offsets that it can have in a longer text.
func formsOf(secret string) [][]byte {
	plain := hex.EncodeToString([]byte(secret))
	all := []string{secret, plain, strings.ToUpper(plain), url.QueryEscape(secret), url.PathEscape(secret)}
	for before := range 3 {
		text := append(make([]byte, before), secret...)
		first, last := (before*8+5)/6, len(text)*8/6
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, e.EncodeToString(text)[first:last])
		}
	}
	forms := make([][]byte, len(all))
	for i, s := range all {
		forms[i] = []byte(s)
	}
	return forms
}

// search searches one place for all canaries. marker is a public text that must be in
// the place, to prove that the test searched the right one.
func (c *canaries) search(t testing.TB, place string, text []byte, marker string) {
	t.Helper()
	if !bytes.Contains(text, []byte(marker)) {
		t.Errorf("%s (%d bytes) does not have %q: it is not searched", place, len(text), marker)
	}
	for _, name := range c.names {
		for _, form := range c.forms[name] {
			if at := bytes.Index(text, form); at >= 0 {
				t.Errorf("%s has the secret %s: …%q…", place, name, text[max(0, at-120):at])
				break
			}
		}
	}
}

// ask sends a request and keeps the response for the search.
func (c *canaries) ask(t testing.TB, d *door, method, path, body string, headers ...string) answer {
	t.Helper()
	a := d.ask(t, method, path, body, headers...)
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(&c.said, "%s %s\n%v\n%s\n", method, path, a.header, a.body)
	return a
}

// filesIn returns the content of all files in a folder.
func filesIn(t testing.TB, dir string) []byte {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

// everythingIn returns every key of a Redis server with its value as serialized by Redis. Texts
// are unchanged, because compression is off.
func everythingIn(t testing.TB, r *confirmtest.Redis) []byte {
	t.Helper()
	keys, err := r.Client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, key := range keys {
		value, err := r.Client.Dump(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s\n%s\n", key, value)
	}
	return all.Bytes()
}

// asJSON is a value as text.
func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
