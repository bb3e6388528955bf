package schema

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

// The MCP methods of a call. Every call has exactly one of them.
const (
	MethodCallTool     = "tools/call"
	MethodReadResource = "resources/read"
	MethodGetPrompt    = "prompts/get"
	MethodComplete     = "completion/complete"
)

// Call is one request to run one tool once.
type Call struct {
	// ID identifies the call for its whole life; see [NewCallID].
	ID CallID
	// Method is the MCP method. Empty means [MethodCallTool].
	Method string
	// Server is the target server. Tool is the target tool; it is empty unless Method is
	// [MethodCallTool].
	Server ServerID
	Tool   string
	// Arguments holds the exact bytes that the caller sent: the arguments object for
	// [MethodCallTool], the whole params object for other methods.
	Arguments []byte
	// Extra holds the fields that an MCP caller sent in addition to the arguments: a JSON
	// object with any of _meta, inputResponses and requestState. If its _meta declares client
	// capabilities, the server may ask for input; see [Result.InputRequired]. It is empty for
	// most calls.
	Extra []byte
	// ToolDigest is the digest of the tool definition that the arguments were validated
	// against. A worker uses it to detect that its own definition differs.
	ToolDigest string
	// Timeout limits the run. It starts when a worker is chosen. Zero means the server's
	// default.
	Timeout time.Duration
	// Principal is the caller.
	Principal Principal
	// Safe means that the call is safe to repeat, according to the operator or to the
	// annotations of a trusted server.
	Safe bool
	// Retry is the retry policy of the call; nil means no retries. It applies only if the call
	// is Safe and has no Approval.
	Retry *Retry
	// Approval is the approval under which a held call runs. It is empty if the call did not
	// require one.
	Approval ApprovalID
	// Warrant is the signed proof of the approval; see internal/warrant. It is empty if the
	// call did not require approval.
	Warrant []byte
	// Durable means that the call is recorded in the ledger. The worker that accepts it
	// remembers the outcome for a while, so that another process can take the call over from
	// its owner.
	Durable bool
	// Bulk means that no caller waits for this single call: it belongs to a batch or was
	// started from the ledger. It yields to interactive calls, and waits for a slot until its
	// context ends.
	Bulk bool
	// Priority, from -10 to 10, scales the share of bulk calls. Each 5 doubles or halves it.
	// Zero is normal.
	Priority int
	// Chosen, if set, is called each time a worker is chosen, before the call is sent to it,
	// so that the intent can name the worker. Chosen may block. If it ends the context of the
	// call, nothing is sent. A call with Chosen is only sent to a named worker, and never to
	// any worker of the server.
	Chosen func(worker WorkerID)
	// ReplayOf is the call whose arguments this call repeats, or "". It is written to the
	// records of the call and is not sent to the worker.
	ReplayOf CallID
	// Trace is the W3C trace context of the caller, if there was one.
	Trace Trace
	// Fresh requests a new result from the tool even if the cache has one. NoStore keeps the
	// result out of the cache.
	Fresh, NoStore bool
	// Progress, if set, receives the params object of each progress notification, in order,
	// before the result. It must not block.
	Progress func(params []byte)
	// Hear, if set, receives the notifications and requests that the server sends to the
	// caller while the call runs, each as a JSON object with method and params. For a
	// notification, answer is nil. For a request, answer takes a JSON object with result or
	// error; call it at most once, from any goroutine. A request also has an id. If the server
	// cancels it, Hear receives notifications/cancelled with that id as requestId, and the answer
	// has no effect. Hear must not block.
	//
	// A server with [Server.Asks] sends them on a session of this caller; see Session. Without
	// such a session, Hear receives only log messages that certainly belong to this call, and
	// only if Extra has a log level.
	Hear func(message []byte, answer func(object []byte))
	// Session identifies the caller's session, for servers that keep one session per caller.
	// It is not a secret and proves nothing. Empty means no session.
	Session string
	// Clock is the time, in RFC 3339, that the tool uses in place of the machine's time. Seed
	// is a decimal integer that the tool uses in place of a random seed. Both are passed to
	// built-in tools, to functions of Go programs and to attached programs. Only environments
	// set them; callers cannot. If empty, the machine's clock and randomness are used.
	Clock, Seed string
	// Lease binds the call to one worker and to the leased process there; see [Lease].
	Lease Lease
}

// Lease identifies the state that a worker keeps for one holder, such as an episode of an
// environment. The zero value means no lease.
type Lease struct {
	// Worker is the only worker that may run the call. A worker's id changes with each start,
	// so a call never reaches a worker that has forgotten the lease.
	Worker WorkerID
	// ID identifies a server process that the worker reserves for the holder, or is "".
	ID string
}

// Trace is a W3C trace context (https://www.w3.org/TR/trace-context/).
type Trace struct {
	Parent string // traceparent
	State  string // tracestate
}

// ID returns the trace id, 32 hex digits. It returns "" if the context is empty or too short.
func (t Trace) ID() string {
	const from, to = len("00-"), len("00-") + 32
	if len(t.Parent) < to {
		return ""
	}
	return t.Parent[from:to]
}

// Result is the answer of a tool. It may report an error of the tool.
type Result struct {
	// Body holds the exact bytes of the MCP result object.
	Body []byte
	// ToolError is true if the result has isError:true.
	ToolError bool
	// InputRequired is true if the server asks for input before it continues. To continue, send
	// the call again with the answers in its Extra.
	InputRequired bool
	// Worker is the worker that ran the call.
	Worker WorkerID
	// Took is the time from sending the request to the MCP server until the worker read the
	// answer.
	Took time.Duration
	// Cache describes how the result cache served the call. It is zero if the cache was not
	// used.
	Cache Caching
	// Attempts is the number of times that the call was sent if a [Retry] applied to it, and
	// zero otherwise.
	Attempts int
}

// Caching describes how the result cache served a call.
type Caching struct {
	// Hit means that the result came from the cache. Miss means that the tool was called
	// because the cache had no result. Fresh means that the tool was called because the caller
	// requested it.
	Hit, Miss, Fresh bool
	// Collapsed means that the call shared the run of an identical call. Stored means that the
	// result is now in the cache.
	Collapsed, Stored bool
	// Age is the age of the result. TTL is the time until it expires.
	Age, TTL time.Duration
}

// Principal is the identity of a caller: an API key, a person or a service.
type Principal struct {
	// Name is the name of the API key or the subject of the token. It is unique over all
	// tenants, because calls, batches and sessions are looked up by it; a name from a token
	// claim begins with the tenant if the issuer sets one. "local" is the caller of a loopback
	// front door without keys.
	Name string `json:"name"`
	// Owner is the person or team that owns the principal. Empty means Name.
	Owner string `json:"owner,omitempty"`
	// Groups are the groups of the principal, as the operator configured them.
	Groups []string `json:"groups,omitempty"`
	// Tenant is the tenant that the credential assigns. Empty means [DefaultTenant].
	Tenant TenantID `json:"tenant,omitempty"`
	// Grant holds the permissions of the credential of the current request; nil means all. It
	// is neither stored nor sent. Work that was accepted under it and waits is checked against
	// the present permissions of its key.
	Grant Grant `json:"-"`
}

// Grant holds the permissions of a credential. It is safe for concurrent use.
type Grant interface {
	// Has reports whether the grant holds one of these scopes, or one that includes it.
	Has(scopes ...string) bool
	// MayCall reports whether the tool may be called. If tool is empty, it reports whether the
	// prompts and resources of the server may be read.
	MayCall(server ServerID, tool string) bool
	// Identity distinguishes principals with the same name. For a token it consists of the
	// issuer, the subject and the tenant.
	Identity() string
}

// Identity returns [Grant.Identity], or the name of a principal without a grant.
func (p *Principal) Identity() string {
	if p.Grant == nil {
		return p.Name
	}
	return p.Grant.Identity()
}

// PrincipalID identifies a principal by its tenant and its name within the tenant. It is
// comparable: Tenant has the form of [TenantID.Stored].
type PrincipalID struct {
	Tenant TenantID
	Name   string
}

// ID returns the identifier of the principal.
func (p *Principal) ID() PrincipalID { return PrincipalID{p.Tenant.Stored(), p.Name} }

// Lasting returns a copy of the principal without its grant, which belongs to one request
// only.
func (p *Principal) Lasting() Principal {
	who := *p
	who.Grant = nil
	return who
}

// Same reports whether both principals have the same name and the same tenant.
func (p *Principal) Same(other *Principal) bool {
	return p.Name == other.Name && p.Tenant.Is(other.Tenant)
}

// Has reports whether the credential of the principal holds one of these scopes; see [Grant].
// It is true if no scopes are given.
func (p *Principal) Has(scopes ...string) bool {
	return len(scopes) == 0 || p.Grant == nil || p.Grant.Has(scopes...)
}

// MayCall returns nil if the credential lets the principal call the tool, and an error of
// [KindForbidden] otherwise; see [Grant].
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

// NewCallID returns a new call id: "call_" and 26 characters. They encode 48 bits of Unix
// milliseconds and 80 random bits, so that ids sort by creation time. It is safe for
// concurrent use.
func NewCallID() CallID { return CallID(NewID("call")) }

// NewID returns a sortable random id with the given prefix, in the format of [NewCallID].
func NewID(prefix string) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(time.Now().UnixMilli())<<16)
	_, _ = rand.Read(raw[6:]) // it never fails
	buf := make([]byte, len(prefix)+1+26)
	n := copy(buf, prefix)
	buf[n] = '_'
	idEncoding.Encode(buf[n+1:], raw[:])
	return string(buf)
}

// IDTime returns the creation time of an id that [NewID] made. ok is false for any other id.
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
