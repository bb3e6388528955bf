package schema

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

// MCP methods that a call may carry. Every call names exactly one of them.
const (
	MethodCallTool     = "tools/call"
	MethodReadResource = "resources/read"
	MethodGetPrompt    = "prompts/get"
	MethodComplete     = "completion/complete"
)

// Call is one request to run one tool once.
type Call struct {
	// ID names the call for its whole life; see [NewCallID].
	ID CallID
	// Method is the MCP method; empty means [MethodCallTool].
	Method string
	// Server and Tool say what is to run. Tool is empty for methods other than
	// [MethodCallTool].
	Server ServerID
	Tool   string
	// Arguments are the exact bytes that the caller sent: the arguments object
	// for [MethodCallTool], the whole params object for other methods.
	Arguments []byte
	// Extra is what a caller that speaks MCP sent with the arguments of a tool:
	// a JSON object with any of _meta, inputResponses and requestState. Where its
	// _meta names client capabilities, the server may ask for input, and the result
	// can be a question; see [Result]. Empty for most calls.
	Extra []byte
	// ToolDigest is the digest of the tool definition the arguments were
	// checked against, so that a worker can tell when it holds another one.
	ToolDigest string
	// Timeout bounds the run, counted from the moment a worker is chosen. Zero
	// means the server's own default.
	Timeout time.Duration
	// Principal is who asks.
	Principal Principal
	// Safe says that the call may be repeated: the operator said so, or a
	// trusted server's annotations did.
	Safe bool
	// Retry is the rule for repeating the call when it fails, nil for none. It counts for a
	// call only that is Safe and has no Approval.
	Retry *Retry
	// Approval is the approval under which a held call runs; empty for one that
	// needed none.
	Approval ApprovalID
	// Warrant is the signed proof that the approval was given; see
	// internal/warrant. Empty for a call that needed none.
	Warrant []byte
	// Durable says that the call stands in the ledger: the worker that takes it
	// remembers its outcome for a while, for whoever takes over from its owner.
	Durable bool
	// Bulk says that nobody waits for this single call: it is part of a batch, or
	// run from the ledger. It lets calls that somebody waits for go first, and
	// waits for a slot until its context ends.
	Bulk bool
	// Priority, from -10 to 10, scales the share of bulk calls: each 5 doubles or
	// halves it. Zero is normal.
	Priority int
	// Chosen, when set, is called each time that a worker was chosen, before the
	// call leaves for it: the place for an intent that names the worker. It may
	// block, and when it ends the context of the call, nothing is sent. A call
	// with it is never sent to a worker that cannot be named.
	Chosen func(worker WorkerID)
	// ReplayOf is the call whose arguments this one repeats, "" for none. It stands in the
	// records of the call and is not sent.
	ReplayOf CallID
	// Trace carries the W3C trace context of the caller, if there was one.
	Trace Trace
	// Fresh asks for a result of the tool's own, even where one of the cache would
	// do; NoStore, that the result is not kept in the cache.
	Fresh, NoStore bool
	// Progress, when set, receives the params object of each progress
	// notification, in order, before the result. It must not block.
	Progress func(params []byte)
	// Hear, when set, receives what the server says to the caller by itself while
	// the call runs: a JSON object with method and params. A request has answer, to
	// be called at most once, from any goroutine, with a JSON object that has result
	// or error; for a notification answer is nil. Hear must not block. A server
	// that is marked as asking its callers speaks on a session that is the caller's own; see
	// Session. Without one the caller gets log messages of which it is certain that they are
	// of this call, where Extra has a log level.
	Hear func(message []byte, answer func(object []byte))
	// Session names the conversation of the caller, for a server that keeps a
	// session for each caller. It is no secret and proves nothing. Empty for none.
	Session string
	// Clock is the time, in RFC 3339, that the tool reads in place of the machine's, and Seed
	// a whole number in decimal for what it would draw at random. They are told to built-in
	// tools, to functions of Go programs and to attached programs. Environments set them, and
	// no caller can. Empty for the machine's.
	Clock, Seed string
	// Lease binds the call to one worker, and there to what was leased; see [Lease].
	Lease Lease
}

// Lease names what a worker keeps for one holder, such as an episode of an environment. The
// zero value is none.
type Lease struct {
	// Worker is the only worker that may run the call. Its id changes with each start, so a
	// call never reaches a worker that has forgotten the lease.
	Worker WorkerID
	// ID names a server process that the worker keeps for the holder alone, "" for none.
	ID string
}

// Trace is a W3C trace context (https://www.w3.org/TR/trace-context/).
type Trace struct {
	Parent string // traceparent
	State  string // tracestate
}

// ID returns the trace id, 32 hex digits, or "" where the context is empty or too
// short to hold one.
func (t Trace) ID() string {
	const from, to = len("00-"), len("00-") + 32
	if len(t.Parent) < to {
		return ""
	}
	return t.Parent[from:to]
}

// Result is what a tool answered, its own error or not.
type Result struct {
	// Body holds the exact bytes of the MCP result object.
	Body []byte
	// ToolError is true when the result carries isError:true.
	ToolError bool
	// InputRequired is true when the server asks for input before it continues: the call
	// is to be sent again with the answers in its Extra.
	InputRequired bool
	// Worker is the worker that ran the call.
	Worker WorkerID
	// Took is the time between sending the request to the MCP server and
	// reading its answer, as the worker saw it.
	Took time.Duration
	// Cache says how the cache of results met the call; zero where it did not.
	Cache Caching
	// Attempts is the number of times that the call was sent where a [Retry] counted for it;
	// else zero.
	Attempts int
}

// Caching says how the cache of results met a call.
type Caching struct {
	// Hit: the result was kept, and is Age old. Miss: the tool was asked, because
	// no result was kept. Fresh: it was asked, because the caller wanted that.
	Hit, Miss, Fresh bool
	// Collapsed: the tool was asked by another call that was the same. Stored: the
	// result is kept now.
	Collapsed, Stored bool
	// Age is how old the result is, TTL how much longer it counts.
	Age, TTL time.Duration
}

// Principal is who asks: an API key, a person, a service.
type Principal struct {
	// Name is unique among principals: the name of the API key, the subject of a
	// token. It is unique over all tenants, because calls, batches and sessions are found
	// by it: names from a claim begin with the tenant where the issuer names one. "local" is
	// the caller of a loopback front door without keys.
	Name string `json:"name"`
	// Owner is the person or team behind the name; empty means Name.
	Owner string `json:"owner,omitempty"`
	// Groups the principal is in, as the operator configured them.
	Groups []string `json:"groups,omitempty"`
	// Tenant is the tenant of the principal, as its credential says; empty means
	// [DefaultTenant].
	Tenant TenantID `json:"tenant,omitempty"`
	// Grant is what the credential of the request lets its principal do; nil: everything.
	// It is of the request alone: it is neither stored nor sent, and what was accepted
	// under it is not judged by it again.
	Grant Grant `json:"-"`
}

// Grant is what a credential lets its principal do. It is safe for concurrent use.
type Grant interface {
	// Has reports whether it holds one of these scopes, or one that includes it.
	Has(scopes ...string) bool
	// MayCall reports whether the tool may be called; with an empty name, whether the
	// prompts and resources of the server may be read.
	MayCall(server ServerID, tool string) bool
	// Identity tells principals apart that have the same name: for a token it is the
	// issuer, the subject and the tenant.
	Identity() string
}

// Identity is [Grant.Identity], and the name of a principal without one.
func (p *Principal) Identity() string {
	if p.Grant == nil {
		return p.Name
	}
	return p.Grant.Identity()
}

// PrincipalID tells principals apart: the name of one counts within its tenant. It is
// comparable: the tenant has the form of [TenantID.Stored].
type PrincipalID struct {
	Tenant TenantID
	Name   string
}

// ID returns what tells the principal from all others.
func (p *Principal) ID() PrincipalID { return PrincipalID{p.Tenant.Stored(), p.Name} }

// Lasting is the principal as it outlives its request: without the grant, which holds what the
// request was sent with.
func (p *Principal) Lasting() Principal {
	who := *p
	who.Grant = nil
	return who
}

// Same reports whether two principals are one: both the name and the tenant are the same.
func (p *Principal) Same(other *Principal) bool {
	return p.Name == other.Name && p.Tenant.Is(other.Tenant)
}

// Has reports whether the credential of the principal holds one of these scopes; no scopes
// are always held. See [Grant].
func (p *Principal) Has(scopes ...string) bool {
	return len(scopes) == 0 || p.Grant == nil || p.Grant.Has(scopes...)
}

// MayCall returns nil where the credential lets the principal call the tool; see [Grant].
// The error is of KindForbidden.
func (p *Principal) MayCall(server ServerID, tool string) error {
	if p.Grant == nil || p.Grant.MayCall(server, tool) {
		return nil
	}
	if tool == "" {
		return Errorf(KindForbidden, "Your credential does not include server %q; it requires the scope tools:call or tools:call:%s.", server, server)
	}
	return Errorf(KindForbidden, "Your credential does not include tool %q of server %q; it requires the scope tools:call or tools:call:%s.", tool, server, server)
}

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewCallID returns a new call id: "call_" and 26 characters that sort by time
// of minting (48 bits of milliseconds) and hold 80 random bits. It is safe for
// concurrent use.
func NewCallID() CallID { return CallID(NewID("call")) }

// NewID returns a sortable random id with the given prefix, in the form that
// [NewCallID] describes.
func NewID(prefix string) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(time.Now().UnixMilli())<<16)
	if _, err := rand.Read(raw[6:]); err != nil {
		panic("schema: no randomness: " + err.Error()) // crypto/rand never fails on Linux; there is nothing to fall back to
	}
	buf := make([]byte, len(prefix)+1+26)
	n := copy(buf, prefix)
	buf[n] = '_'
	idEncoding.Encode(buf[n+1:], raw[:])
	return string(buf)
}

// IDTime returns when an id was minted that [NewID] made; ok is false for anything else.
func IDTime(id string) (t time.Time, ok bool) {
	_, tail, ok := strings.Cut(id, "_")
	var raw [16]byte
	if !ok || len(tail) != 26 {
		return t, false
	}
	if n, err := idEncoding.Decode(raw[:], []byte(tail)); err != nil || n != len(raw) {
		return t, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(raw[:8]) >> 16)), true
}
