package cli

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// TestAnOperatorSeesWhichEncryptionKeysAreInUse has one file for credentials and for data keys.
func TestAnOperatorSeesWhichEncryptionKeysAreInUse(t *testing.T) {
	plainEnvironment(t)
	server := bustest.Start(t)
	conn := server.Connect(t, "approver")
	dir := t.TempDir()
	file, config := filepath.Join(dir, "keys"), filepath.Join(dir, "callyard.yaml")
	const first, second, third = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlqYWI=", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDI="
	write := func(path string, lines ...string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys := func(lines ...string) *credential.Keys {
		t.Helper()
		write(file, lines...)
		k, err := credential.LoadKeys(file)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write(config, "nats: {url: '"+server.URL+"'}", "encryption: {key_file: "+file+"}", "credentials:", "  key_file: "+file, "  servers: [{name: jira, url: https://jira.example/mcp, kind: header}]")
	show := func() (states []string) {
		t.Helper()
		out, errOut, code := typed(t, "", "keys", "encryption", "--config", config, "--json")
		var all []encryptionKey
		if code != 0 || json.Unmarshal([]byte(out), &all) != nil {
			t.Fatalf("%d %s%s", code, out, errOut)
		}
		for _, k := range all {
			states = append(states, k.State)
			if k.File != file || k.Key == "" || (k.Line == 0) != (k.State == "missing") || k.State != "newest" && (k.Rows == 0) != (k.State == "unused") {
				t.Errorf("%+v", k)
			}
		}
		return states
	}
	same := func(when string, got []string, want ...string) {
		t.Helper()
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	k := keys(first)
	same("without any table", show(), "newest")
	ring, err := datakey.Open(t.Context(), conn, k, false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer ring.Close()
	sealed, err := k.Seal([]byte("x"), "a row")
	if err == nil {
		sealed, err = ring.Seal(t.Context(), "red", sealed, "credential", "red.row")
	}
	if err != nil {
		t.Fatal(err)
	}
	rows, err := credentialtable.Open(t.Context(), conn)
	if err == nil {
		_, err = rows.Put(t.Context(), "red.row", sealed)
	}
	if err != nil {
		t.Fatal(err)
	}
	k = keys("# keys", second, third, first)
	same("before a restart", show(), "newest", "unused", "in use")
	again, err := datakey.Open(t.Context(), conn, k, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	same("while a credential has the former key", show(), "newest", "unused", "in use")
	keys(second)
	same("if the former key was removed too early", show(), "newest", "missing")
	if out, _, code := typed(t, "", "keys", "encryption", "--config", config); code != 0 || !strings.Contains(out, "missing") || !strings.Contains(out, "LINE") {
		t.Errorf("%d\n%s", code, out)
	}
	write(config, "nats: {url: '"+server.URL+"'}")
	if _, errOut, code := typed(t, "", "keys", "encryption", "--config", config); code != exitUsage || !strings.Contains(errOut, "credentials.key_file") {
		t.Errorf("without key files: %d %s", code, errOut)
	}
}
