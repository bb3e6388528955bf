package schema

import (
	"encoding/json"
	"time"
)

// InitializationState is the startup progress of a server. Its values are those of the API of
// MCP Bridge.
type InitializationState string

const (
	StateStarting    InitializationState = "starting"
	StateInitialized InitializationState = "initialized"
	StateTimeout     InitializationState = "timeout"
	StateError       InitializationState = "error"
)

// Server is the state of an MCP server on one worker.
type Server struct {
	ID        ServerID            `json:"id"`
	State     InitializationState `json:"initialization_state"`
	Transport string              `json:"transport"` // "stdio", "http", "sse", "websocket", "openapi", "tool_endpoint", "builtin", "native" or "attach"
	// Risk is the risk level that the operator set, from 1 to 3. 0 means none.
	Risk int `json:"risk_level,omitempty"`
	// Added means that the server was added over the API. It is not in the worker's servers file.
	Added bool `json:"added,omitempty"`
	// PID is the process id of the first live child process on that worker, or 0.
	PID int `json:"pid"`
	// Digest is the digest of the [Definitions] that the worker has of this server. It is
	// empty until they were read for the first time.
	Digest string `json:"definitions_digest,omitempty"`
	// Slots is the number of calls that this worker runs concurrently for the server.
	Slots int `json:"slots"`
	// Sessions is the number of live MCP sessions. Restarts is the number of sessions that
	// were replaced since the worker started.
	Sessions int `json:"sessions"`
	Restarts int `json:"restarts"`
	// OtherDefinitions is the number of attached programs that wait, because their
	// definitions differ from those of the programs in use.
	OtherDefinitions int `json:"other_definitions,omitempty"`
	// OtherVersion means that the worker uses another version of the bus protocol than the
	// process that received the report. It is not sent.
	OtherVersion bool `json:"-"`
	// Error is the reason why State is not initialized. StderrTail holds the last lines that
	// a failed child process wrote to stderr.
	Error      string `json:"error,omitempty"`
	StderrTail string `json:"stderr_tail,omitempty"`
	// Protocol is the MCP revision of the session. Version and Title are those that the server
	// reports.
	Protocol string `json:"protocol_version,omitempty"`
	Version  string `json:"version,omitempty"`
	Title    string `json:"title,omitempty"`
	// TrustAnnotations means that the operator trusts the readOnlyHint and idempotentHint of
	// this server.
	TrustAnnotations bool `json:"trust_annotations,omitempty"`
	// Asks means that the server sends requests to its callers during a call, on a separate
	// session for each caller.
	Asks bool `json:"asks,omitempty"`
	// Pin controls tools whose definition differs from the accepted one: [PinWarn] or
	// [PinQuarantine]. Empty means [PinOff].
	Pin string `json:"pin,omitempty"`
	// SafeTools are the globs of the tools that the operator marked as safe to repeat.
	SafeTools []string `json:"safe_tools,omitempty"`
	// Retry is the retry policy for tools that are safe to repeat; nil means no retries.
	// ToolRetry holds the policies of single tools, which replace it.
	Retry     *Retry            `json:"retry,omitempty"`
	ToolRetry map[string]*Retry `json:"tool_retry,omitempty"`
	// Timeout is the server's default timeout of a call.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Sandbox describes how this worker isolates calls of the server. It is nil if the worker
	// has no sandboxes and none was requested.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
}

// The values of [Server.Pin].
const (
	PinOff        = "off"        // definitions may change
	PinWarn       = "warn"       // a changed definition is reported
	PinQuarantine = "quarantine" // a tool with a changed definition does not run until the change is accepted
)

// The values of [Sandbox.Isolation]. Bubblewrap is the weaker one.
const (
	IsolationContainer  = "container"
	IsolationBubblewrap = "bubblewrap"
)

// Sandbox describes how a worker isolates single calls of a server.
type Sandbox struct {
	Isolation string `json:"isolation"`
	Image     string `json:"image,omitempty"` // as the operator wrote it
	// Only means that the server never runs outside a sandbox.
	Only bool `json:"only,omitempty"`
	// Ready means that calls can run in the sandbox. If false, Error is the reason.
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
}

// Definitions holds everything that a server offers, as the raw bytes that it sent. A list is
// nil if the server does not offer that kind.
type Definitions struct {
	Tools             []json.RawMessage `json:"tools"`
	Resources         []json.RawMessage `json:"resources,omitempty"`
	ResourceTemplates []json.RawMessage `json:"resource_templates,omitempty"`
	Prompts           []json.RawMessage `json:"prompts,omitempty"`
	// About is the server's description of itself: an object with serverInfo and, if present,
	// instructions and the extensions of its capabilities. It may be nil.
	About json.RawMessage `json:"about,omitempty"`
}

// Tool is one operation that a server offers.
type Tool struct {
	Server ServerID
	Name   string
	// Raw is the definition exactly as the server sent it.
	Raw json.RawMessage
	// Digest is the digest of Raw.
	Digest string
	// Input is the raw inputSchema inside Raw.
	Input json.RawMessage
	// ReadOnly and Idempotent are the server's hints. They are false if absent.
	ReadOnly   bool
	Idempotent bool
	// Destructive and OpenWorld are the server's hints. If they are absent, MCP's defaults
	// apply: a tool is open-world, and it is destructive unless it is read-only.
	Destructive bool
	OpenWorld   bool
	// Tags come from "tags" in the definition's _meta.
	Tags []string
}

// Worker is the announcement of a process that runs calls.
type Worker struct {
	// ID is unique for each start of the process. It consists of the configured name and a
	// random suffix.
	ID WorkerID `json:"id"`
	// Name is the configured name.
	Name string `json:"name"`
	// Version is the build version of the worker.
	Version string `json:"version"`
	// Host is the host name of the machine, and PID the process id on it.
	Host   string            `json:"host"`
	PID    int               `json:"pid"`
	Labels map[string]string `json:"labels,omitempty"`
	// Draining means that the worker finishes its calls and accepts no new ones.
	Draining bool `json:"draining"`
	// InFlight is the number of calls that run now.
	InFlight int      `json:"in_flight"`
	Servers  []Server `json:"servers"`
	// APIServers means that the operator lets the front door add servers to this worker.
	APIServers bool `json:"api_servers,omitempty"`
	// Started is the start time of the process.
	Started time.Time `json:"started"`
	// Wire is the version of the bus protocol. 0 means 1.
	Wire int `json:"wire,omitempty"`
	// StandingKeys are the ids of the keys that the worker trusts to sign standing
	// permissions.
	StandingKeys []string `json:"standing_keys,omitempty"`
	// Trusts is nil if the worker runs an older version that does not announce it.
	Trusts *WarrantKeys `json:"trusts,omitempty"`
	// Links is the number of times that the connection to NATS was re-established.
	Links int `json:"links,omitempty"`
	// InForce is the effective configuration of the process.
	InForce []InForce `json:"in_force,omitempty"`
}

// WarrantKeys are the ids of the keys whose warrants a worker accepts.
type WarrantKeys struct {
	People []string `json:"people,omitempty"` // for calls that people approved
	Caller []string `json:"caller,omitempty"` // for calls that their callers confirmed
}

// RegionLabel is the label that holds the region of a worker.
const RegionLabel = "region"
