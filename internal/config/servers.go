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

// Servers is the content of a servers file and its variables.
type Servers struct {
	// Entries are the servers in the order of the file, followed by those that only variables name.
	Entries []ServerEntry
	// Notes name the parts that were left out or ignored, one sentence each, with the place. They
	// hold no secrets.
	Notes []string
}

// Transports of a server.
const (
	TypeStdio = "stdio" // a child process that uses standard input and output
	TypeHTTP  = "http"  // streamable HTTP
	TypeSSE   = "sse"   // the older HTTP transport with server-sent events
	// TypeWebSocket is a WebSocket connection to the server, with the subprotocol "mcp".
	TypeWebSocket = "websocket"
)

// ServerEntry is one MCP server as the operator wrote it, with its variables replaced. Printing,
// logging and JSON never show its environment, headers or arguments; read the fields to use them.
type ServerEntry struct {
	ID   string
	Type string // TypeStdio, TypeHTTP, TypeSSE, TypeWebSocket, TypeOpenAPI, TypeToolEndpoint, TypeBuiltin or TypeAttach

	Command string            // of a stdio server: a name in PATH or a path
	Args    []string          //
	Env     map[string]string // in addition to the few variables that every server gets
	Dir     string            // working directory; "" means that of the worker

	URL     string            // of an http, sse or websocket server
	Headers map[string]string // sent with each HTTP request, including a bearer token

	// Auth sets the credential of each request instead of Headers. It is nil if none is set.
	Auth *Auth `json:",omitempty"`

	OpenAPI  *OpenAPI      `json:",omitempty"` // of a server of that type
	Endpoint *ToolEndpoint `json:",omitempty"` // of a server of TypeToolEndpoint
	Builtin  *Builtin      `json:",omitempty"` // of a server of TypeBuiltin
	Attach   *Attach       `json:",omitempty"` // of a server of TypeAttach

	Risk   int     // level 1 to 3; 0 means not set
	Docker *Docker // nil if not set

	// Sandbox is SandboxBubblewrap if the operator chose it, otherwise "". Bubblewrap holds its
	// settings, or nil if there are none.
	Sandbox    string
	Bubblewrap *Bubblewrap

	Sessions int           // live sessions; 0 means the default
	InFlight int           // concurrent calls in each session; 0 means the default
	Timeout  time.Duration // of one call; 0 means the default
	// StartTimeout limits the start: process, handshake and first lists. 0 means the default.
	StartTimeout time.Duration

	IdleStop time.Duration // the server stops after this idle time; 0 means never
	OnDemand bool          // start at the first call

	// Asks means that the server may ask its callers for input during a call. Each such call has
	// a session of its own.
	Asks bool `json:",omitempty"`

	Labels           map[string]string // only workers with all of these labels run the server
	TrustAnnotations bool              // readOnlyHint and idempotentHint of its tools are trusted
	SafeTools        []string          // glob patterns of tools that are safe to repeat
	// Results decides what happens to a result that does not match the tool's outputSchema:
	// ResultsMark, ResultsRefuse or ResultsOff. "" means ResultsMark.
	Results string `json:",omitempty"`

	// Pin decides what happens to a tool whose definition is not the accepted one:
	// schema.PinOff, PinWarn or PinQuarantine. "" means PinOff.
	Pin string `json:",omitempty"`

	// Retry is the rule for repeating calls of tools that are safe to repeat. If nil, only calls that
	// provably did not start, or that were lost with their worker, are repeated. ToolRetry holds
	// rules of single tools, which replace Retry.
	Retry     *schema.Retry            `json:",omitempty"`
	ToolRetry map[string]*schema.Retry `json:",omitempty"`

	// Where is the place of the entry: "file:line:column" or a variable.
	Where string
}

// Values of [ServerEntry.Results].
const (
	ResultsMark   = "mark"   // the result's _meta lists the faults
	ResultsRefuse = "refuse" // the call fails with an error that lists the faults
	ResultsOff    = "off"    // results are not checked
)

// LogValue returns the parts of the entry that may be shown.
func (e ServerEntry) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("id", e.ID), slog.String("type", e.Type)}
	attrs = appendShown(attrs, "command", e.Command, "args", notShown(e.Args), "env", names(e.Env), "cwd", e.Dir, "url", shownURL(e.URL))
	if o := e.OpenAPI; o != nil {
		document := o.Document
		if IsWebAddress(document) {
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

// appendShown appends alternating keys and values. It omits empty values.
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

// notShown replaces arguments, which may hold secrets.
func notShown(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return fmt.Sprintf("[%d not shown]", len(args))
}

// String returns the parts of the entry that may be shown.
func (e ServerEntry) String() string { return e.LogValue().String() }

// Format prints String for every verb.
func (e ServerEntry) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, e.String()) }

// MarshalJSON writes the parts that may be shown. An entry is not meant to be sent anywhere.
func (e ServerEntry) MarshalJSON() ([]byte, error) { return shownJSON(e.LogValue()) }

func names(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// shownURL keeps the scheme and host, because paths and queries can hold tokens.
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
