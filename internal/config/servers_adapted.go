package config

import (
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Types of servers that do not speak MCP. The worker adapts them.
const (
	TypeOpenAPI      = "openapi"       // a REST service that an OpenAPI document describes
	TypeToolEndpoint = "tool_endpoint" // an HTTP endpoint that takes tool calls of a model
)

// FormatOpenAI is the only format of a [ToolEndpoint]: tool_calls of OpenAI chat completions.
const FormatOpenAI = "openai"

const (
	maxSecretFile       = 64 << 10
	mostCallsPerRequest = 100
)

// OpenAPI selects the operations of a REST service that become tools.
type OpenAPI struct {
	// Document is an http or https URL, or the path of a file, in JSON or YAML.
	Document string
	// BaseURL is the address of the service. It may be empty only if the document is fetched and
	// names the address itself.
	BaseURL string
	// Credentials maps the names of the document's security schemes to credentials.
	Credentials map[string]Credential `json:",omitempty"`
	// Include and Exclude select operations. An empty Include selects all.
	Include []Selector `json:",omitempty"`
	Exclude []Selector `json:",omitempty"`
}

// Credential is the credential of one security scheme: a value, or a user name and a password.
// Printing never shows it.
type Credential struct{ Value, Username, Password string }

// String hides the credential.
func (Credential) String() string { return hiddenText }

// GoString hides the credential.
func (Credential) GoString() string { return hiddenText }

// MarshalText hides the credential.
func (Credential) MarshalText() ([]byte, error) { return []byte(hiddenText), nil }

// Selector matches operations that match all its non-empty lists.
type Selector struct {
	Tags       []string `yaml:"tags" json:",omitempty"`       // a tag of the operation
	Methods    []string `yaml:"methods" json:",omitempty"`    // HTTP methods, in any case
	Paths      []string `yaml:"paths" json:",omitempty"`      // patterns of paths: * within a segment, ** across segments
	Operations []string `yaml:"operations" json:",omitempty"` // patterns of operationIds
}

// ToolEndpoint is an HTTP endpoint that answers tool calls of a model.
type ToolEndpoint struct {
	URL    string
	Format string // FormatOpenAI
	// Tools is a JSON array of tools in that format. It is nil if ToolsURL is set.
	Tools    json.RawMessage `json:",omitempty"`
	ToolsURL string          `json:",omitempty"`
	// CallsPerRequest is the maximum number of calls in one request. 0 and 1 mean one call.
	CallsPerRequest int `json:",omitempty"`
}

type credentialShape struct {
	Value        looseString `yaml:"value"`
	ValueFile    string      `yaml:"value_file"`
	Username     looseString `yaml:"username"`
	Password     looseString `yaml:"password"`
	PasswordFile string      `yaml:"password_file"`
}

type endpointShape struct {
	URL      string           `yaml:"url"`
	Format   string           `yaml:"format"`
	Tools    []map[string]any `yaml:"tools"`
	ToolsURL string           `yaml:"tools_url"`

	CallsPerRequest *int `yaml:"calls_per_request"`
}

// adapted returns the kind of a server that does not speak MCP; ok is false for an MCP server.
func (d *draft) adapted() (kind string, ok bool) {
	switch {
	case d.has("openapi"):
		return TypeOpenAPI, true
	case d.has("tool_endpoint"):
		return TypeToolEndpoint, true
	case d.has("builtin"):
		return TypeBuiltin, true
	case d.has("attach"):
		return TypeAttach, true
	}
	return "", false
}

// finishAdapted checks the settings of a server that the worker adapts.
func (r *serverReader) finishAdapted(d *draft, e *ServerEntry) {
	for _, key := range []string{"command", "url", "openapi", "tool_endpoint", "builtin", "attach"} {
		if key != e.Type && d.has(key) {
			r.fault(d, key, "the server has %s too, and needs exactly one transport; remove one of them.", quote(e.Type))
		}
	}
	for _, key := range []string{"type", "transport"} {
		if d.has(key) {
			r.fault(d, key, "a server with %s has no other transport; remove it.", quote(e.Type))
		}
	}
	r.onlyForBuiltin(d, e.Type)
	r.onlyForAttach(d, e.Type)
	if e.Type == TypeAttach {
		r.onlyFor(d, "openapi", "base_url", "credentials", "include", "exclude")
		r.unused(d, "args", "env", "cwd", "headers", "auth", "bearerTokenEnv", "apiKey")
		r.attached(d, e)
		return
	}
	if e.Type == TypeBuiltin {
		r.onlyFor(d, "openapi", "base_url", "credentials", "include", "exclude")
		r.unused(d, "args", "env", "cwd", "headers", "auth", "bearerTokenEnv")
		if d.has("apiKey") {
			r.fault(d, "apiKey", "is for a server that is reached by url; write \"api_key\" for a search engine.")
		}
		r.builtin(d, e)
		return
	}
	e.Headers = plainMap(d.shape.Headers)
	e.URL = d.shape.URL // only set if it is a fault already
	r.checkRemote(d, e)
	e.URL = ""
	r.unused(d, "args", "env", "cwd")
	if e.Type == TypeOpenAPI {
		r.openAPI(d, e)
		return
	}
	r.onlyFor(d, "openapi", "base_url", "credentials", "include", "exclude")
	r.toolEndpoint(d, e)
}

// onlyFor reports keys that have an effect only for another kind of server. Ignoring them could
// expose a tool that was meant to be excluded.
func (r *serverReader) onlyFor(d *draft, kind string, keys ...string) {
	for _, key := range keys {
		if d.has(key) {
			r.fault(d, key, "is for a server with %s only; remove it.", quote(kind))
		}
	}
}

func (r *serverReader) openAPI(d *draft, e *ServerEntry) {
	s := &d.shape
	o := &OpenAPI{Document: s.OpenAPI, BaseURL: s.BaseURL, Include: s.Include, Exclude: s.Exclude}
	e.OpenAPI = o
	fetched := false
	switch {
	case IsWebAddress(o.Document):
		fetched = true
	case strings.TrimSpace(o.Document) == "" || strings.Contains(o.Document, "://"):
		r.fault(d, "openapi", "must be the path of a document, or its http or https address.")
	case r.path == "":
		r.fault(d, "openapi", "a server that is added by a request cannot read files here; give the address of the document.")
	default:
		o.Document = r.relativeTo(o.Document)
	}
	switch {
	case d.has("base_url"):
		if u, err := url.Parse(o.BaseURL); !IsWebAddress(o.BaseURL) || err != nil || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			r.fault(d, "base_url", "must be an http or https address without user, query and fragment, such as https://api.example.com/v1.")
		}
	case !fetched:
		r.fault(d, "openapi", "a document in a file does not reliably contain the URL of the service; add \"base_url\".")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Credentials)) {
		if c, ok := r.credential(d, name, s.Credentials[name]); ok {
			if o.Credentials == nil {
				o.Credentials = map[string]Credential{}
			}
			o.Credentials[name] = c
		}
	}
	r.selectors(d, "include", o.Include)
	r.selectors(d, "exclude", o.Exclude)
}

// credential reads one credential, including its files.
func (r *serverReader) credential(d *draft, name string, s credentialShape) (Credential, bool) {
	key := joinName(join(d.path, "credentials"), name)
	bad := func(sub, format string, args ...any) (Credential, bool) {
		r.faultBelow(d, "credentials", join(key, sub), format, args...)
		return Credential{}, false
	}
	c := Credential{Value: string(s.Value), Username: string(s.Username), Password: string(s.Password)}
	for _, f := range []struct {
		key, file string
		into      *string
	}{{"value", s.ValueFile, &c.Value}, {"password", s.PasswordFile, &c.Password}} {
		if f.file == "" {
			continue
		}
		if *f.into != "" {
			return bad(f.key+"_file", "%s is set too; keep one of them.", f.key)
		}
		if r.path == "" {
			return bad(f.key+"_file", "a server that is added by a request cannot read files here; give the %s itself.", f.key)
		}
		text, err := readText(r.relativeTo(f.file), maxSecretFile)
		if err != nil {
			return bad(f.key+"_file", "%v", err)
		}
		*f.into = strings.TrimRight(string(text), "\r\n")
	}
	secret := c.Value + c.Username + c.Password
	switch {
	case c.Value == "" && c.Username == "" && c.Password == "":
		return bad("", "is empty; write {\"value\": \"${NAME}\"}, or \"username\" and \"password\".")
	case c.Value != "" && (c.Username != "" || c.Password != ""):
		return bad("", "has both a value and a user name or password; keep what the scheme requires.")
	case c.Value == "" && c.Username == "":
		return bad("", "has a password and no user name; add \"username\".")
	case strings.ContainsFunc(secret, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return bad("", "contains a line break or another character that is not allowed in requests; remove it.")
	case strings.Contains(c.Username, ":"):
		return bad("username", "holds a \":\", which is not allowed in this kind of user name; correct it.")
	}
	return c, true
}

func (r *serverReader) selectors(d *draft, key string, list []Selector) {
	for i, s := range list {
		full := join(d.path, key) + "[" + strconv.Itoa(i) + "]"
		bad := func(format string, args ...any) { r.faultBelow(d, key, full, format, args...) }
		if len(s.Tags)+len(s.Methods)+len(s.Paths)+len(s.Operations) == 0 {
			bad("selects nothing; set \"tags\", \"methods\", \"paths\" or \"operations\".")
		}
		for _, m := range s.Methods {
			if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, strings.ToUpper(m)) {
				bad("%s is not a supported method; write GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.", quote(shorten(m)))
			}
		}
		for _, p := range s.Paths {
			if !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "*") {
				bad("%s is not a pattern of paths; begin it with \"/\", such as \"/pets/**\".", quote(shorten(p)))
			}
		}
		for _, o := range s.Operations {
			if _, err := path.Match(o, ""); err != nil || o == "" {
				bad("%s is not a pattern of operationIds; use * and ?, such as \"get*\".", quote(shorten(o)))
			}
		}
		if slices.Contains(s.Tags, "") {
			bad("has an empty tag; remove it.")
		}
	}
}

func (r *serverReader) toolEndpoint(d *draft, e *ServerEntry) {
	t := &ToolEndpoint{Format: FormatOpenAI}
	e.Endpoint = t
	s := d.shape.ToolEndpoint
	if s == nil {
		return // reported while reading
	}
	bad := func(sub, format string, args ...any) {
		r.faultBelow(d, "tool_endpoint", join(join(d.path, "tool_endpoint"), sub), format, args...)
	}
	t.URL, t.ToolsURL = s.URL, s.ToolsURL
	if !IsWebAddress(t.URL) {
		bad("url", "must be the http or https address that takes tool calls.")
	}
	if s.Format != "" && s.Format != FormatOpenAI {
		bad("format", "%s is not a known format; write \"openai\", or omit it.", quote(shorten(s.Format)))
	}
	if n := s.CallsPerRequest; n != nil {
		if t.CallsPerRequest = *n; *n < 1 || *n > mostCallsPerRequest {
			bad("calls_per_request", "must be from 1 to %d.", mostCallsPerRequest)
		}
	}
	switch {
	case t.ToolsURL != "" && s.Tools != nil:
		bad("tools_url", "tools is set too; keep one of them.")
	case t.ToolsURL != "" && !IsWebAddress(t.ToolsURL):
		bad("tools_url", "must be an http or https address that answers with a list of tools.")
	case t.ToolsURL == "" && len(s.Tools) == 0:
		bad("tools", "is missing; list the tools in the form of OpenAI's API, or set \"tools_url\" to the address of the list.")
	}
	if len(s.Tools) > 0 {
		text, err := json.Marshal(s.Tools)
		if err != nil {
			bad("tools", "cannot be read; write the tools in the form of OpenAI's API.")
		}
		t.Tools = text
	}
	for i, tool := range s.Tools {
		function, _ := tool["function"].(map[string]any)
		if function == nil && tool["type"] == "function" {
			function = tool // the form of OpenAI's newer API
		}
		if name, _ := function["name"].(string); name == "" {
			bad("tools["+strconv.Itoa(i)+"]", "is not a tool; write {\"type\": \"function\", \"function\": {\"name\": …, \"description\": …, \"parameters\": {…}}}.")
		}
	}
}

// relativeTo resolves a path relative to the folder of the servers file.
func (r *serverReader) relativeTo(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(r.path), file)
}

// faultBelow reports the full path below a key of the draft, unless reading already reported it.
func (r *serverReader) faultBelow(d *draft, key, full, format string, args ...any) {
	if r.read.has(full) {
		return
	}
	at, ok := r.decode.places[full]
	if !ok {
		at = d.place(key)
	}
	r.faults.add(at, full, format, args...)
}

// IsWebAddress reports whether s is an absolute HTTP or HTTPS URL.
func IsWebAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
