package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBuiltInServersAreRead(t *testing.T) {
	file := adaptedFile(t, `{"builtin": "files", "roots": ["data", "/srv/out:rw"], "riskLevel": 2}`)
	servers, err := LoadServers(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := servers.Entries[0]
	if want := []string{filepath.Join(filepath.Dir(file), "data"), "/srv/out:rw"}; e.Type != TypeBuiltin || e.Builtin.Name != "files" || e.Risk != 2 || !slices.Equal(e.Builtin.Roots, want) {
		t.Errorf("got %+v", e.Builtin)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if servers, err = LoadServers(adaptedFile(t, `{"builtin": "search", "engine": "brave", "api_key_file": "`+key+`"}`), nil); err != nil {
		t.Fatal(err)
	}
	if e = servers.Entries[0]; e.Builtin.APIKey != "s3cret" || strings.Contains(e.String(), "s3cret") {
		t.Errorf("got %q, shown as %s", e.Builtin.APIKey, e)
	}
}

func TestFaultsOfBuiltInServersAreNamed(t *testing.T) {
	for entry, want := range map[string]string{
		`{"builtin": ""}`: "write the name of a built-in server",
		`{"builtin": "calculator", "command": "x"}`:                                           "needs exactly one transport",
		`{"builtin": "calculator", "docker": {"image": "x"}}`:                                 "cannot run in a container",
		`{"builtin": "calculator", "riskLevel": 3}`:                                           "write 1 or 2",
		`{"builtin": "calculator", "type": "http"}`:                                           "remove it",
		`{"builtin": "search", "engine_url": "search.example"}`:                               "must be an http or https address",
		`{"builtin": "search", "api_key": "a", "api_key_file": "b"}`:                          "keep one of them",
		`{"builtin": "search", "engine": "brave", "api_key_file": "/no/such/file"}`:           "does not exist",
		`{"command": "x", "roots": ["/"]}`:                                                    "is for a server with",
		`{"openapi": "https://a.example/x", "base_url": "https://a.example", "allow": ["b"]}`: "is for a server with",
	} {
		if _, err := LoadServers(adaptedFile(t, entry), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", entry, err)
		}
	}
	for _, key := range []string{"roots", "allow"} {
		if _, err := ParseServer("x", []byte(`{"builtin": "files", "`+key+`": ["/"]}`)); err == nil || !strings.Contains(err.Error(), "cannot be set in a request") {
			t.Errorf("%s in a request: %v", key, err)
		}
	}
}
