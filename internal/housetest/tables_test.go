package housetest

// rank is the height of a package in the architecture; imports go down only.
type rank int

const (
	nouns rank = iota // pkg/schema
	kit               // internal/kit: helpers for several packages; may import only the nouns
	onNouns
	ground // risk, bus
	support
	domain
	role
	assembly
	command
)

func (r rank) String() string {
	return [...]string{"the nouns", "the kit", "the packages on the nouns", "the ground (risk, bus)", "support", "the domain", "the roles", "the assembly", "the commands"}[r]
}

// layer assigns a rank to a package and all packages below it; the longest matching root applies.
type layer struct {
	root string
	rank rank
}

// layers lists the packages of section 2 of the architecture in the order of section 3.
var layers = []layer{
	{"pkg/schema", nouns},
	{"internal/kit", kit},
	{"internal/buildinfo", kit},

	{"internal/validate", onNouns},
	{"internal/format", onNouns},
	{"internal/search", onNouns},

	{"pkg/risk", ground},
	{"pkg/bus", ground},

	{"internal/config", support},
	{"internal/settings", support},
	{"internal/telemetry", support},
	{"internal/lifecycle", support},
	{"internal/reload", support},
	{"internal/listen", support},
	{"internal/authn", support},
	{"internal/store/audit", support},
	{"internal/confirm", support},
	{"internal/calls/quota", support},
	{"internal/calls/cache", support},
	{"internal/warrant", support},
	{"internal/store/ledger", support},
	{"internal/store/journal", support},
	{"internal/problem", support},
	{"internal/bodies", support},
	{"internal/waits", support},
	{"internal/calls/records", support},
	{"internal/launch", support},
	{"internal/upstream", support},
	{"internal/credential", support},
	{"internal/authserver", support},
	{"internal/hub", support},
	{"internal/toolset", support},
	{"internal/tenants", support},
	{"internal/embedding", support},
	{"internal/webhook", support},
	{"internal/store", support},
	{"internal/embedded", support},
	{"internal/demo", support}, // a server like any other: it does not know Callyard

	{"internal/catalog", domain},
	{"internal/session", domain},
	{"internal/approval", domain},
	{"internal/calls/admission", domain},
	{"internal/calls/execution", domain},
	{"internal/dispatch", domain},
	{"internal/batch", domain},
	{"internal/eval", domain},
	{"internal/reward", domain},
	{"internal/episode", domain},
	{"internal/agent", domain},
	{"internal/calls", domain},
	{"internal/console", domain}, // pages on top of the REST API; the approver serves them

	{"internal/frontdoor", role},
	{"internal/rollout", role},
	{"internal/worker", role},
	{"internal/approver", role},

	{"internal/setup", assembly}, // shared by the programs: configuration, flags, parts of each role
	{"internal/cli", assembly},   // the commands of callyard; `up` runs all roles in one process

	{"pkg/worker", assembly}, // the SDK: the public interface to the roles worker and front door

	{"cmd", command},
	{"bench", command}, // a separate module, so that no program links its plotting libraries
	{"e2e", command},   // a separate module, so that the product does not require the dependencies of tests
	{"deploy", command},

	{"internal/housetest", command}, // reads all files, imports none
	{"internal/mcptest", support},
	{"internal/openapitest", support},
}

// endpoints submit calls and show their outcomes. behindCalls are the packages that internal/calls
// hides from them.
var (
	endpoints   = []string{"internal/frontdoor/rest", "internal/frontdoor/mcp"}
	behindCalls = []string{"internal/calls/admission", "internal/calls/execution", "internal/calls/release", "internal/approval", "internal/store/ledger", "internal/store/journal", "internal/calls/records"}
)

// callStores are the stores of calls: durable ones, held ones, and the call records.
var callStores = []string{"internal/store/journal", "internal/store/ledger", "internal/calls/records"}

// knowCallStores are the packages and files that may import a store of calls. All others use
// internal/calls.
var knowCallStores = []struct{ root, reason string }{
	{"internal/calls", "it is the entry to all stores of calls"},
	{"internal/batch", "it runs the calls of journals, below internal/calls"},
	{"internal/approval", "it decides on the calls of the ledger, below internal/calls"},
	{"internal/confirm", "it spends the tokens in the ledger, below internal/approval"},
	{"internal/approver", "it runs no calls: it shows the content of the ledger to approvers and must not link internal/calls"},
	{"internal/frontdoor/stores.go", "it opens the stores for internal/calls"},
	{"internal/cli/provision.go", "callyard init creates the streams of every store"},
	{"internal/cli/records.go", "callyard records reads the streams directly after a damaged data folder lost some"},
	{"internal/cli/calls.go", "it decodes the JSON of GET /calls into the types that encode it"},
	{"internal/cli/permissions.go", "it decodes the approver's JSON into the type that encodes it"},
}

// publicWorker is the only package of pkg that may import internal packages: the public interface to
// the worker role.
const publicWorker = "pkg/worker"

// restAPI has one package below it for each resource. Resources must not import each other, except for
// the shared packages.
const restAPI = "internal/frontdoor/rest"

var restShared = []string{restAPI + "/httpapi", restAPI + "/openapi", restAPI + "/submit"}

// mixed are the ranks whose packages may import each other (the compiler rejects cycles). Packages of
// other ranks must not.
var mixed = map[rank]bool{kit: true, onNouns: true, support: true, domain: true, assembly: true, command: true}

// library lists the packages that may import an external library, including their subpackages.
type library struct {
	root   string // import path; includes all packages below it
	owners []string
	reason string
	// names, if set, limits the row to files that use one of these names.
	names []string
}

// libraries is the table of rule 3. If several rows match an import, the longest root applies. A
// library without a row may be imported by one package only.
var libraries = []library{
	{root: "github.com/nats-io/nats.go", owners: []string{"pkg/bus", "internal/embedded"},
		reason: "subjects, headers and delivery promises are decided in one place"},
	{root: "github.com/nats-io", owners: []string{"internal/embedded", "pkg/bus"},
		reason: "one package embeds the server and one connects to it"},
	{root: "github.com/danielgtaylor/huma", owners: []string{"internal/frontdoor/rest", "internal/approver/web"},
		reason: "the REST framework stays replaceable if only the two packages that serve an API know it"},
	{root: "github.com/modelcontextprotocol/go-sdk", owners: []string{"internal/session", "internal/mcptest", "internal/demo", "bench", "pkg/worker"},
		reason: "few files should have to work around the pitfalls of the SDK"},
	{root: "github.com/modelcontextprotocol/go-sdk/mcp", owners: []string{"internal/mcptest", "internal/demo", "bench"},
		names:  []string{"NewServer", "AddTool", "NewStreamableHTTPHandler", "NewSSEHandler"},
		reason: "the MCP endpoint does not use the SDK; only servers of tests, the benchmark and the demo do"},
	{root: "github.com/modelcontextprotocol/go-sdk/mcp", owners: []string{"internal/session", "bench", "pkg/worker"}, // pkg/worker reads the name of a server
		names:  []string{"NewClient"},
		reason: "only sessions use the client of the SDK"},
	{root: "github.com/modelcontextprotocol/go-sdk/oauthex", owners: []string{"internal/upstream/oauth"},
		reason: "one package reads and checks metadata of other servers"},
	{root: "github.com/go-jose/go-jose", owners: []string{"internal/authn/token", "internal/upstream/oauth", "internal/authserver"},
		reason: "one package verifies tokens of callers, one signs for the client of upstream servers, and the authorization server signs tokens"},
	{root: "github.com/redis/go-redis", owners: []string{"internal/confirm", "internal/calls/quota", "internal/calls/cache"},
		reason: "only the packages that spend tokens, share limits and cache results know the data that Redis may lose"},
	{root: "github.com/go-redis/redis_rate", owners: []string{"internal/calls/quota"},
		reason: "one package shares limits"},
	{root: "github.com/moby", owners: []string{"internal/launch/sandbox"},
		reason: "one package hardens containers"},
	{root: "github.com/getkin/kin-openapi", owners: []string{"internal/launch/openapi"},
		reason: "one package decides on the permitted content of foreign documents"},
	{root: "github.com/coder/websocket", owners: []string{"internal/launch/attach", "internal/rollout"},
		reason: "package attach has the rules for the frames of attached programs, package rollout those of trainers"},
	{root: "code.dny.dev/ssrf", owners: []string{"internal/kit/addresses"},
		reason: "one package decides which addresses are public, for all outgoing connections"},
	{root: "github.com/docker", owners: []string{"internal/launch/sandbox"},
		reason: "one package hardens containers"},
	{root: "github.com/slack-go/slack", owners: []string{"internal/approver/slack"},
		reason: "Slack is one way to ask people, and the web page the other"},
	{root: "github.com/aymanbagabas/go-udiff", owners: []string{"internal/kit/textdiff", "internal/cli"},
		reason: "pages show differences line by line, the command line those of definitions"},
	{root: "github.com/coreos/go-oidc", owners: []string{"internal/approver/oidc"},
		reason: "one package verifies identities"},
	{root: "go.opentelemetry.io/otel/sdk", owners: []string{"internal/telemetry"},
		reason: "telemetry is set up once"},
	{root: "go.opentelemetry.io/otel/exporters", owners: []string{"internal/telemetry"},
		reason: "telemetry is set up once"},
	{root: "github.com/prometheus", owners: []string{"internal/telemetry"},
		reason: "metric names and the number of their series are decided in one place"},
	{root: "github.com/lmittmann/tint", owners: []string{"internal/telemetry"},
		reason: "log formats are decided in one place"},
	{root: "github.com/santhosh-tekuri/jsonschema", owners: []string{"internal/validate"},
		reason: "its messages repeat values and its arithmetic needs limits; package validate handles both"},
	{root: "cel.dev/cel-go", owners: []string{"pkg/risk", "internal/episode"},
		reason: "the policy and the success conditions of environments are each compiled where they are read"},
	{root: "gonum.org/v1/plot", owners: []string{"bench", "e2e/chaos"},
		reason: "only the benchmark draws plots"},
	{root: "github.com/callyard/callyard/clients/go", owners: []string{"internal/cli", "internal/console"},
		reason: "the Go client is for clients of a front door, such as the commands and the console"},
	{root: "github.com/spf13", owners: []string{"internal/setup", "internal/cli", "bench"}, reason: "only commands parse flags"},
	{root: "github.com/oasdiff/yaml", owners: []string{"internal/launch/openapi"},
		reason: "it is the YAML parser of kin-openapi, and reads the same documents"},
	{root: "github.com/goccy/go-yaml", owners: []string{"internal/config", "pkg/risk/yamldoc"},
		reason: "the parser panics and recurses; one package wraps it for reading, and the configuration writes"},
	{root: "github.com/charmbracelet/x", owners: []string{"internal/telemetry", "internal/setup", "internal/cli"},
		reason: "only the log, the set-up and the commands check for a terminal"},
	{root: "golang.org/x", reason: "golang.org/x is maintained by the Go project"},

	{root: "github.com/callyard/callyard/internal/batch", owners: []string{"internal/calls"}, names: []string{"ParseCallID"},
		reason: "an id determines the store of a call, which only internal/calls may know"},
}
