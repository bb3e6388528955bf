package housetest

// rank is how high a package stands; arrows go down only.
type rank int

const (
	nouns rank = iota // pkg/schema
	kit               // internal/kit: what several packages need; it knows the nouns at most
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

// layer places a package and all below it; the longest root that fits counts.
type layer struct {
	root string
	rank rank
}

// layers is section 2 of the architecture as section 3 orders it.
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
	{"internal/demo", support}, // a server like any other: it knows nothing of us

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
	{"internal/console", domain}, // pages over the REST API; the approver serves them

	{"internal/frontdoor", role},
	{"internal/rollout", role},
	{"internal/worker", role},
	{"internal/approver", role},

	{"internal/setup", assembly}, // what the programs share: configuration, flags, parts of each role
	{"internal/cli", assembly},   // the commands of callyard; `up` puts all roles into one process

	{"pkg/worker", assembly}, // the SDK: the public door to the roles worker and front door

	{"cmd", command},
	{"bench", command}, // a module of its own, so that nothing links what it draws with
	{"e2e", command},   // a module of its own, so that the product requires nothing that only tests need
	{"deploy", command},

	{"internal/housetest", command}, // reads everything, imports nothing
	{"internal/mcptest", support},
	{"internal/openapitest", support},
}

// endpoints hand calls in and show what came of them; behindCalls are the packages that
// internal/calls hides from them.
var (
	endpoints   = []string{"internal/frontdoor/rest", "internal/frontdoor/mcp"}
	behindCalls = []string{"internal/calls/admission", "internal/calls/execution", "internal/calls/release", "internal/approval", "internal/store/ledger", "internal/store/journal", "internal/calls/records"}
)

// callStores are what calls are stored in: durable ones, held ones, and the execution log.
var callStores = []string{"internal/store/journal", "internal/store/ledger", "internal/calls/records"}

// knowCallStores are the packages, and the one file, that may name a store of calls. Whoever
// else wants to know something of a call asks internal/calls.
var knowCallStores = []struct{ root, reason string }{
	{"internal/calls", "it is the entry to all of them"},
	{"internal/batch", "it runs the calls of journals, below internal/calls"},
	{"internal/approval", "it decides on the calls of the ledger, below internal/calls"},
	{"internal/confirm", "it spends the tokens that the ledger has, below internal/approval"},
	{"internal/approver", "a role without calls: it shows what the ledger holds to the people who decide, and links no internal/calls"},
	{"internal/frontdoor/stores.go", "it opens the stores and hands them to internal/calls"},
	{"internal/cli/provision.go", "callyard init makes the streams of every store"},
	{"internal/cli/records.go", "callyard records reads the streams themselves, where a damaged data folder lost some"},
	{"internal/cli/calls.go", "it reads the JSON of GET /calls into the types that it is written from"},
	{"internal/cli/permissions.go", "it reads the approver's JSON into the type that it is written from"},
}

// publicWorker is the one package of pkg that stands on internal: the public door to the
// worker role.
const publicWorker = "pkg/worker"

// restAPI is made of resources, each a package below it, which import none of each other but
// what they share.
const restAPI = "internal/frontdoor/rest"

var restShared = []string{restAPI + "/httpapi", restAPI + "/openapi", restAPI + "/submit"}

// mixed are the ranks whose packages may import each other; a cycle does not
// compile. Of the others each package stands for itself.
var mixed = map[rank]bool{kit: true, onNouns: true, support: true, domain: true, assembly: true, command: true}

// library says which packages may import an outside library. Subpackages of an
// owner own too.
type library struct {
	root   string // import path; everything below is meant too
	owners []string
	reason string
	// names, when set, narrows the row to files that use one of these names.
	names []string
}

// libraries is rule 3. Of rows that fit one import, the longest root counts. A
// library without a row may have one importing package.
var libraries = []library{
	{root: "github.com/nats-io/nats.go", owners: []string{"pkg/bus", "internal/embedded"},
		reason: "subjects, headers and delivery promises are decided in one place"},
	{root: "github.com/nats-io", owners: []string{"internal/embedded", "pkg/bus"},
		reason: "the server is embedded in one place and faced by one package"},
	{root: "github.com/danielgtaylor/huma", owners: []string{"internal/frontdoor/rest", "internal/approver/web"},
		reason: "the REST framework stays replaceable while the two packages that serve an API know it"},
	{root: "github.com/modelcontextprotocol/go-sdk", owners: []string{"internal/session", "internal/mcptest", "internal/demo", "bench", "pkg/worker"},
		reason: "the SDK has traps that few files should have to know"},
	{root: "github.com/modelcontextprotocol/go-sdk/mcp", owners: []string{"internal/mcptest", "internal/demo", "bench"},
		names:  []string{"NewServer", "AddTool", "NewStreamableHTTPHandler", "NewSSEHandler"},
		reason: "the MCP endpoint needs no SDK; servers of the tests, the benchmark and the demo are made with it"},
	{root: "github.com/modelcontextprotocol/go-sdk/mcp", owners: []string{"internal/session", "bench", "pkg/worker"}, // pkg/worker asks a server for its name
		names:  []string{"NewClient"},
		reason: "the client half of the SDK is the sessions'"},
	{root: "github.com/modelcontextprotocol/go-sdk/oauthex", owners: []string{"internal/upstream/oauth"},
		reason: "how metadata of others is read and checked is decided in one place"},
	{root: "github.com/go-jose/go-jose", owners: []string{"internal/authn/token", "internal/upstream/oauth", "internal/authserver"},
		reason: "one package verifies tokens of callers, one signs for the client of upstream servers, and the authorization server signs tokens"},
	{root: "github.com/redis/go-redis", owners: []string{"internal/confirm", "internal/calls/quota", "internal/calls/cache"},
		reason: "what Redis may forget is decided where tokens are spent, limits are shared and results are kept"},
	{root: "github.com/go-redis/redis_rate", owners: []string{"internal/calls/quota"},
		reason: "limits are shared in one place"},
	{root: "github.com/moby", owners: []string{"internal/launch/sandbox"},
		reason: "one package hardens containers"},
	{root: "github.com/getkin/kin-openapi", owners: []string{"internal/launch/openapi"},
		reason: "what a document of somebody else may do is decided in one place"},
	{root: "github.com/coder/websocket", owners: []string{"internal/launch/attach", "internal/rollout"},
		reason: "package attach has the rules for the frames of attached programs, package rollout those of trainers"},
	{root: "code.dny.dev/ssrf", owners: []string{"internal/kit/addresses"},
		reason: "which addresses are public is decided in one place, for all doors that lead outside"},
	{root: "github.com/docker", owners: []string{"internal/launch/sandbox"},
		reason: "one package hardens containers"},
	{root: "github.com/slack-go/slack", owners: []string{"internal/approver/slack"},
		reason: "Slack is one way to ask people, and the web page the other"},
	{root: "github.com/aymanbagabas/go-udiff", owners: []string{"internal/kit/textdiff", "internal/cli"},
		reason: "pages show differences line by line, the command line those of definitions"},
	{root: "github.com/coreos/go-oidc", owners: []string{"internal/approver/oidc"},
		reason: "what proves who somebody is has one place"},
	{root: "go.opentelemetry.io/otel/sdk", owners: []string{"internal/telemetry"},
		reason: "telemetry is set up once"},
	{root: "go.opentelemetry.io/otel/exporters", owners: []string{"internal/telemetry"},
		reason: "telemetry is set up once"},
	{root: "github.com/prometheus", owners: []string{"internal/telemetry"},
		reason: "metric names and the number of their series are decided in one place"},
	{root: "github.com/lmittmann/tint", owners: []string{"internal/telemetry"},
		reason: "log formats are decided in one place"},
	{root: "github.com/santhosh-tekuri/jsonschema", owners: []string{"internal/validate"},
		reason: "its sentences repeat values and its arithmetic needs a guard; validate has both in hand"},
	{root: "cel.dev/cel-go", owners: []string{"pkg/risk", "internal/episode"},
		reason: "the policy and the success conditions of environments are each compiled where they are read"},
	{root: "gonum.org/v1/plot", owners: []string{"bench", "e2e/chaos"},
		reason: "pictures are drawn by those who measure"},
	{root: "github.com/callyard/callyard/clients/go", owners: []string{"internal/cli", "internal/console"},
		reason: "the Go client is for those who talk to a front door from outside, as the commands and the console do"},
	{root: "github.com/spf13", owners: []string{"internal/setup", "internal/cli", "bench"}, reason: "flags are the commands' business"},
	{root: "github.com/goccy/go-yaml", owners: []string{"internal/config", "pkg/risk/yamldoc"},
		reason: "the parser panics and recurses; one package reads what people write, and the configuration writes"},
	{root: "github.com/charmbracelet/x", owners: []string{"internal/telemetry", "internal/setup", "internal/cli"},
		reason: "the log, the set-up and the commands ask whether a writer is a terminal"},
	{root: "golang.org/x", reason: "it belongs to the language"},

	{root: "github.com/callyard/callyard/internal/batch", owners: []string{"internal/calls"}, names: []string{"ParseCallID"},
		reason: "an id tells where a call is stored, and only internal/calls has to know"},
}
