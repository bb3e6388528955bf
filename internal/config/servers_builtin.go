package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// TypeBuiltin is the type of a server that runs in the worker itself.
const TypeBuiltin = "builtin"

// Builtin is a server built into the worker, with its settings. Package hub checks the values.
type Builtin struct {
	Name  string
	Roots []string `json:",omitempty"` // of files: absolute directories, writable with the suffix ":rw"
	Allow []string `json:",omitempty"` // of fetch: internal hosts (with or without port), addresses and networks that may be reached

	Engine    string `json:",omitempty"` // of search
	EngineURL string `json:",omitempty"` // of search, for a self-hosted engine
	APIKey    string `json:"-"`          // of search
}

// builtinKeys are the keys that only built-in servers have.
var builtinKeys = []string{"roots", "allow", "engine", "engine_url", "api_key", "api_key_file"}

func (r *serverReader) builtin(d *draft, e *ServerEntry) {
	s := &d.shape
	b := &Builtin{Name: s.Builtin, Allow: s.Allow, Engine: s.Engine, EngineURL: s.EngineURL, APIKey: string(s.APIKey)}
	e.Builtin = b
	if strings.TrimSpace(b.Name) == "" {
		r.fault(d, "builtin", "is empty; write the name of a built-in server, such as \"calculator\". \"callyard hub list\" lists them.")
	}
	for _, key := range []string{"docker", "sandbox", "bubblewrap"} {
		if d.has(key) {
			r.fault(d, key, "a built-in server runs in the worker itself and cannot run in a container; remove it.")
		}
	}
	if s.RiskLevel == 3 {
		r.fault(d, "riskLevel", "3 requires a container, and a built-in server runs in the worker itself; write 1 or 2.")
	}
	if r.path == "" {
		for _, key := range []string{"roots", "allow", "api_key_file"} {
			if d.has(key) {
				r.fault(d, key, "cannot be set in a request, because only the operator can grant this access; add the server to the servers file.")
			}
		}
		return
	}
	for _, root := range s.Roots {
		dir, mode := root, ""
		if trimmed, ok := strings.CutSuffix(root, ":rw"); ok {
			dir, mode = trimmed, ":rw"
		}
		if strings.TrimSpace(dir) == "" {
			r.fault(d, "roots", "has an empty directory; remove it.")
			continue
		}
		full, err := filepath.Abs(r.relativeTo(dir))
		if err != nil {
			r.fault(d, "roots", "%v", err)
			continue
		}
		b.Roots = append(b.Roots, full+mode)
	}
	if d.has("engine_url") && !IsWebAddress(b.EngineURL) {
		r.fault(d, "engine_url", "must be an http or https address.")
	}
	r.builtinKey(d, b)
}

// builtinKey reads the API key of a search engine from its file.
func (r *serverReader) builtinKey(d *draft, b *Builtin) {
	if !d.has("api_key_file") {
		return
	}
	if d.has("api_key") {
		r.fault(d, "api_key_file", "api_key is set too; keep one of them.")
		return
	}
	text, err := readText(r.relativeTo(d.shape.APIKeyFile), maxSecretFile)
	if err != nil {
		r.fault(d, "api_key_file", "%v", err)
		return
	}
	b.APIKey = strings.TrimRight(string(text), "\r\n")
}

// onlyForBuiltin reports keys of built-in servers in the entry of another kind. Ignoring them could
// allow more than the operator meant.
func (r *serverReader) onlyForBuiltin(d *draft, kind string) {
	if kind == TypeBuiltin {
		return
	}
	r.onlyFor(d, TypeBuiltin, slices.Clone(builtinKeys)...)
}
