package schema

import (
	"encoding/json"
	"time"
)

// InitializationState says how far a server has come; the words are those of
// the API of MCP Bridge.
type InitializationState string

const (
	StateStarting    InitializationState = "starting"
	StateInitialized InitializationState = "initialized"
	StateTimeout     InitializationState = "timeout"
	StateError       InitializationState = "error"
)

// Server is an MCP server as one worker sees it.
type Server struct {
	ID        ServerID            `json:"id"`
	State     InitializationState `json:"initialization_state"`
	Transport string              `json:"transport"` // "stdio", "http", "sse", "websocket", "openapi", "tool_endpoint", "builtin", "native" or "attach"
	// Risk is the level the operator set: 0 for none, else 1 to 3.
	Risk int `json:"risk_level,omitempty"`
	// PID is the process id of the first live child on that worker, 0 where there is none.
	PID int `json:"pid"`
	// Digest names the [Definitions] the worker holds for this server; empty
	// until they were read once.
	Digest string `json:"definitions_digest,omitempty"`
	// Slots is how many calls this worker takes at once for the server.
	Slots int `json:"slots"`
	// Sessions is how many live MCP sessions there are; Restarts counts the
	// replacements since the worker started.
	Sessions int `json:"sessions"`
	Restarts int `json:"restarts"`
	// OtherDefinitions is how many attached programs wait because what they offer differs
	// from what the programs in use offer.
	OtherDefinitions int `json:"other_definitions,omitempty"`
	// OtherVersion says that its worker speaks another version of the bus than the process
	// that received the report. It is not sent.
	OtherVersion bool `json:"-"`
	// Error says why State is not initialized; StderrTail holds the last lines
	// that a failed child wrote.
	Error      string `json:"error,omitempty"`
	StderrTail string `json:"stderr_tail,omitempty"`
	// Protocol is the MCP revision the session speaks, Title and Version what
	// the server calls itself.
	Protocol string `json:"protocol_version,omitempty"`
	Version  string `json:"version,omitempty"`
	Title    string `json:"title,omitempty"`
	// TrustAnnotations says that the operator lets this server's readOnlyHint
	// and idempotentHint count.
	TrustAnnotations bool `json:"trust_annotations,omitempty"`
	// Asks says that the server asks its callers by itself in the middle of a call, on
	// a session of their own.
	Asks bool `json:"asks,omitempty"`
	// Pin says what becomes of a tool whose definition is not the accepted one: [PinWarn]
	// or [PinQuarantine]; empty means [PinOff].
	Pin string `json:"pin,omitempty"`
	// SafeTools are tool globs that the operator marked as safe to repeat.
	SafeTools []string `json:"safe_tools,omitempty"`
	// Retry is the rule for repeating calls of tools that are safe to repeat, nil for none;
	// ToolRetry has the rules of single tools, which replace it.
	Retry     *Retry            `json:"retry,omitempty"`
	ToolRetry map[string]*Retry `json:"tool_retry,omitempty"`
	// Timeout is the server's default time for a call.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Sandbox is how this worker runs calls of the server in isolation; nil where it
	// cannot and was not asked to.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
}

// Values of [Server].Pin.
const (
	PinOff        = "off"        // definitions may change
	PinWarn       = "warn"       // a changed definition is reported
	PinQuarantine = "quarantine" // a tool with a changed definition does not run until it is accepted
)

// Isolations of a [Sandbox], as answers name them. The second one is weaker.
const (
	IsolationContainer  = "container"
	IsolationBubblewrap = "bubblewrap"
)

// Sandbox says how a worker runs single calls of a server apart from everything else.
type Sandbox struct {
	Isolation string `json:"isolation"`
	Image     string `json:"image,omitempty"` // as the operator named it
	// Only says that the server never runs outside a sandbox.
	Only bool `json:"only,omitempty"`
	// Ready says that calls can run in it; else Error says why not.
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
}

// Definitions is everything a server says that it offers, as the raw bytes it
// sent. Lists are nil where the server does not offer the kind at all.
type Definitions struct {
	Tools             []json.RawMessage `json:"tools"`
	Resources         []json.RawMessage `json:"resources,omitempty"`
	ResourceTemplates []json.RawMessage `json:"resource_templates,omitempty"`
	Prompts           []json.RawMessage `json:"prompts,omitempty"`
	// About is what the server says of itself, an object with serverInfo, and where it
	// has them instructions and extensions (of its capabilities); nil for nothing.
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
	// ReadOnly and Idempotent are the server's hints; false when absent.
	ReadOnly   bool
	Idempotent bool
	// Destructive and OpenWorld are hints too. Where they are absent, MCP takes a tool for
	// open-world, and for destructive unless it is read-only.
	Destructive bool
	OpenWorld   bool
	// Tags are the server's, from "tags" in the definition's _meta.
	Tags []string
}

// Worker is one process that runs calls, as it announces itself.
type Worker struct {
	// ID is unique for each start of the process: its configured name and a
	// random tail.
	ID WorkerID `json:"id"`
	// Name is what the operator calls it.
	Name string `json:"name"`
	// Version is the build it runs.
	Version string `json:"version"`
	// Host and PID say where it runs.
	Host   string            `json:"host"`
	PID    int               `json:"pid"`
	Labels map[string]string `json:"labels,omitempty"`
	// Draining workers finish what they have and take nothing new.
	Draining bool `json:"draining"`
	// InFlight is how many calls it runs now.
	InFlight int      `json:"in_flight"`
	Servers  []Server `json:"servers"`
	// APIServers says that the operator lets the front door add servers here.
	APIServers bool `json:"api_servers,omitempty"`
	// Started is when the process began.
	Started time.Time `json:"started"`
	// Wire is the version of the bus that it speaks; 0 stands for 1.
	Wire int `json:"wire,omitempty"`
	// StandingKeys are the ids of the keys that it trusts to sign for standing
	// permissions.
	StandingKeys []string `json:"standing_keys,omitempty"`
	// Links is how often its connection to NATS was made again.
	Links int `json:"links,omitempty"`
	// InForce is the configuration that the process goes by.
	InForce []InForce `json:"in_force,omitempty"`
}

// RegionLabel is the label with which a worker says in which region it runs.
const RegionLabel = "region"
