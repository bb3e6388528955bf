package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Servers is what a servers file and its variables say.
type Servers struct {
	// Entries are the servers in the order of the file, then those that only
	// variables name.
	Entries []ServerEntry
	// Notes say what was left out or not looked at, one sentence each, with its
	// place. They hold no secrets.
	Notes []string
}

// Transports of a server.
const (
	TypeStdio = "stdio" // a process that talks over its standard input and output
	TypeHTTP  = "http"  // streamable HTTP
	TypeSSE   = "sse"   // the older HTTP transport with server-sent events
	// TypeWebSocket is a WebSocket connection to the server, with the subprotocol "mcp".
	TypeWebSocket = "websocket"
)

// ServerEntry is one MCP server as an operator wrote it, with its variables put
// in. It shows neither environment, headers nor arguments when it is printed,
// logged or written as JSON; read the fields to use them.
type ServerEntry struct {
	ID   string
	Type string // TypeStdio, TypeHTTP, TypeSSE, TypeWebSocket, TypeOpenAPI, TypeToolEndpoint, TypeBuiltin or TypeAttach

	Command string            // of a stdio server: a name in PATH or a path
	Args    []string          //
	Env     map[string]string // added to the few variables that every server gets
	Dir     string            // where it runs; "" is the worker's own directory

	URL     string            // of an http, sse or websocket server
	Headers map[string]string // of one that is reached over HTTP: sent with each request, bearer token included

	// Auth gives the credential of each request, in place of Headers; nil where none is set.
	Auth *Auth `json:",omitempty"`

	OpenAPI  *OpenAPI      `json:",omitempty"` // of a server of that type
	Endpoint *ToolEndpoint `json:",omitempty"` // of a server of TypeToolEndpoint
	Builtin  *Builtin      `json:",omitempty"` // of a server of TypeBuiltin
	Attach   *Attach       `json:",omitempty"` // of a server of TypeAttach

	Risk   int     // the level, 1 to 3; 0 where none is set
	Docker *Docker // nil where none is set

	// Sandbox is SandboxBubblewrap where the operator chose that; else "". Bubblewrap
	// is its settings, nil where there are none.
	Sandbox    string
	Bubblewrap *Bubblewrap

	Sessions int           // live sessions; 0 means the default
	InFlight int           // calls at once in each session; 0 means the default
	Timeout  time.Duration // for one call; 0 means the default
	// StartTimeout is for its start: process, handshake and first lists; 0 means the default.
	StartTimeout time.Duration

	IdleStop time.Duration // stop when unused that long; 0 means never
	OnDemand bool          // do not start before the first call

	// Asks says that the server may ask its callers for input in the middle of a
	// call, each on a session of its own.
	Asks bool `json:",omitempty"`

	Labels           map[string]string // only workers that have all of them take it
	TrustAnnotations bool              // its readOnlyHint and idempotentHint count
	SafeTools        []string          // globs of tools that are safe to repeat
	// Results says what becomes of a result that does not fit the tool's outputSchema:
	// ResultsMark, ResultsRefuse or ResultsOff. "" means ResultsMark.
	Results string `json:",omitempty"`

	// Pin says what becomes of a tool whose definition is not the accepted one:
	// schema.PinOff, PinWarn or PinQuarantine. "" means PinOff.
	Pin string `json:",omitempty"`

	// Retry is the rule for repeating calls of tools that are safe to repeat; nil repeats only
	// what is proven not to have started, and what was lost with its worker. ToolRetry has
	// the rules of single tools, which replace it.
	Retry     *schema.Retry            `json:",omitempty"`
	ToolRetry map[string]*schema.Retry `json:",omitempty"`

	// Where is the place it was written at: "file:line:column" or a variable.
	Where string
}

// The values of [ServerEntry.Results].
const (
	ResultsMark   = "mark"   // the faults are listed in the result's _meta
	ResultsRefuse = "refuse" // the call ends with an error that lists the faults
	ResultsOff    = "off"    // results are not checked
)

// LogValue returns what may be shown of the entry.
func (e ServerEntry) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("id", e.ID), slog.String("type", e.Type)}
	attrs = appendShown(attrs, "command", e.Command, "args", notShown(e.Args), "env", names(e.Env), "cwd", e.Dir, "url", shownURL(e.URL))
	if o := e.OpenAPI; o != nil {
		document := o.Document
		if isWebAddress(document) {
			document = shownURL(document)
		}
		attrs = appendShown(attrs, "openapi", document, "base_url", shownURL(o.BaseURL), "credentials", slices.Sorted(maps.Keys(o.Credentials)))
	}
	if e.Endpoint != nil {
		attrs = appendShown(attrs, "tool_endpoint", shownURL(e.Endpoint.URL))
	}
	if b := e.Builtin; b != nil {
		attrs = appendShown(attrs, "builtin", b.Name, "roots", b.Roots, "allow", b.Allow, "engine", b.Engine, "engine_url", shownURL(b.EngineURL))
	}
	if e.Attach != nil {
		attrs = append(attrs, slog.Bool("attach", true), slog.Int("attach_keys", len(e.Attach.Keys)))
	}
	attrs = appendShown(attrs, "headers", names(e.Headers))
	if e.Auth != nil {
		attrs = append(attrs, slog.String("auth", e.Auth.Mode))
	}
	attrs = appendShown(attrs, "riskLevel", e.Risk)
	if e.Docker != nil {
		attrs = append(attrs, slog.Any("docker", *e.Docker))
	}
	attrs = appendShown(attrs, "sandbox", e.Sandbox)
	if e.Bubblewrap != nil {
		attrs = append(attrs, slog.Any("bubblewrap", *e.Bubblewrap))
	}
	if e.Retry != nil {
		attrs = append(attrs, slog.Any("retry", *e.Retry))
	}
	return slog.GroupValue(appendShown(attrs,
		"sessions", e.Sessions, "inFlight", e.InFlight, "timeout", e.Timeout, "startTimeout", e.StartTimeout, "idleStop", e.IdleStop,
		"onDemand", e.OnDemand, "asks", e.Asks, "labels", e.Labels, "trustAnnotations", e.TrustAnnotations, "safeTools", e.SafeTools, "results", e.Results, "pin", e.Pin,
		"tools", slices.Sorted(maps.Keys(e.ToolRetry)),
	)...)
}

// appendShown appends keys with their values, which stand in turns; empty ones are left
// out.
func appendShown(attrs []slog.Attr, pairs ...any) []slog.Attr {
	for pair := range slices.Chunk(pairs, 2) {
		key, value := pair[0].(string), pair[1]
		v := reflect.ValueOf(value)
		if v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
			continue
		}
		if d, ok := value.(time.Duration); ok {
			value = formatDuration(d)
		}
		attrs = append(attrs, slog.Any(key, value))
	}
	return attrs
}

// notShown stands for arguments, which may hold secrets.
func notShown(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return fmt.Sprintf("[%d not shown]", len(args))
}

// String returns what may be shown of the entry.
func (e ServerEntry) String() string { return e.LogValue().String() }

// Format prints String for every verb.
func (e ServerEntry) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, e.String()) }

// MarshalJSON writes what may be shown: an entry is not meant to travel.
func (e ServerEntry) MarshalJSON() ([]byte, error) { return shownJSON(e.LogValue()) }

func names(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// shownURL keeps the scheme and host: tokens travel in paths and queries too.
func shownURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		if s == "" {
			return ""
		}
		return hiddenText
	}
	if u.Path == "" && u.RawQuery == "" {
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + "://" + u.Host + "/…"
}

// shownJSON writes a group of log attributes as a JSON object.
func shownJSON(group slog.Value) ([]byte, error) {
	m := map[string]any{}
	for _, attr := range group.Group() {
		m[attr.Key] = attr.Value.Any()
	}
	return json.Marshal(m)
}
