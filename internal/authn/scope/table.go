package scope

import (
	"maps"
	"slices"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// Requirement is the requirement of an operation. The zero value requires only a valid credential.
type Requirement struct {
	// Scopes are alternatives: one is sufficient.
	Scopes []string
	// InDefault are the alternatives for the default tenant, instead of Scopes, because the
	// resources of that tenant belong to the installation.
	InDefault []string
	// DefaultTenant requires a principal of the default tenant, because the operation changes
	// shared resources.
	DefaultTenant bool
	// AllServers requires a tenant that sees every server, because the response includes all
	// servers, whatever the tenant sees.
	AllServers bool
}

var (
	nothing    = Requirement{}
	readTools  = Requirement{Scopes: []string{ReadTools}}
	wholeFleet = Requirement{Scopes: []string{ReadTools}, AllServers: true}
	listTools  = Requirement{Scopes: []string{ReadTools, ListTools}}
	callTools  = Requirement{Scopes: []string{CallTools}}
	// A principal that may call tools may read the outcomes of its calls.
	ownCalls = Requirement{Scopes: []string{ReadCalls, CallTools}}
	admin    = Requirement{Scopes: []string{Admin}, DefaultTenant: true}
	// These concern only the principal's tenant.
	tenantAdmin = Requirement{Scopes: []string{Admin, AdminTenant}}
	// The sets of the default tenant belong to the installation.
	ownSets = Requirement{Scopes: []string{Admin, AdminTenant}, InDefault: []string{Admin}}
	audits  = Requirement{Scopes: []string{Admin, AdminTenant, ReadAllCalls}}
)

// operations maps the id of each REST operation to its requirement. Admission also checks the
// server and tool of calls.
var operations = map[string]Requirement{
	"get-health": nothing, "get-livez": nothing, "get-readyz": nothing, "get-version": nothing,

	"get-metrics": wholeFleet, "list-front-doors": wholeFleet, "get-configuration": wholeFleet,
	"list-evaluations": wholeFleet, "get-evaluation": wholeFleet, "get-evaluation-page": wholeFleet, // they include tools of every server
	"list-workers": readTools, "get-events": readTools,
	"get-server-pins": readTools, "list-switches": readTools,
	"list-servers": listTools, "get-server": listTools, "list-server-tools": listTools, "list-server-resources": listTools, "list-server-resource-templates": listTools, "list-server-prompts": listTools,
	"get-server-openapi": listTools, "get-set-openapi": listTools,
	"list-sets": listTools, "get-set": listTools, "list-tools": listTools, "search-tools": listTools, "preflight": listTools, "test-policy": listTools, "convert-tools": listTools,

	"call-tool": callTools, "create-call": callTools, "create-tool-calls": callTools, "confirm-call": callTools, "confirm-calls": callTools,
	"read-resource": callTools, "get-prompt": callTools,
	"create-batch": callTools, "add-batch-calls": callTools, "seal-batch": callTools, "cancel-batch": callTools, "cancel-call": callTools, "replay-call": callTools,

	"get-call": ownCalls, "list-calls": ownCalls, "list-batches": ownCalls, "get-batch": ownCalls, "get-batch-results": ownCalls, "get-batch-events": ownCalls, "get-batch-held": ownCalls,
	"get-usage": {Scopes: []string{ReadCalls, CallTools, AdminTenant}}, // data of others only as in package usage

	"put-set": ownSets, "remove-set": ownSets,
	"switch-tools": admin, "switch-tool": admin,
	"add-server": admin, "remove-server": admin, "restart-server": admin, "drain-worker": admin, "accept-server-pins": admin, "dry-run-policy": admin,

	"list-audit":   audits,                       // only of the principal's tenant
	"list-tenants": audits, "get-tenant": audits, // the same; all tenants for the default tenant
	"verify-audit": {Scopes: []string{Admin, ReadAllCalls}, DefaultTenant: true},
	"erase-tenant": admin,
	"get-state":    admin, "put-state": admin,

	"list-webhook-deliveries": tenantAdmin, "retry-webhook-delivery": tenantAdmin,
	"settle-call": tenantAdmin, "list-keys": tenantAdmin, "get-key": tenantAdmin, "create-key": tenantAdmin, "update-key": tenantAdmin, "rotate-key": tenantAdmin, "revoke-key": tenantAdmin,
}

// OfOperation returns the requirement of a REST operation. ok is false if it is not in the table.
func OfOperation(id string) (need Requirement, ok bool) {
	need, ok = operations[id]
	return need, ok
}

// methods maps MCP methods to requirements, except those of the session itself.
var methods = map[string]Requirement{
	mcpwire.MethodListTools: listTools, mcpwire.MethodListResources: listTools, mcpwire.MethodListResourceTemplates: listTools, mcpwire.MethodListPrompts: listTools,
	mcpwire.MethodListen: listTools, mcpwire.MethodSubscribe: listTools, mcpwire.MethodUnsubscribe: listTools,
	schema.MethodCallTool: callTools, schema.MethodReadResource: callTools, schema.MethodGetPrompt: callTools, schema.MethodComplete: callTools,
	mcpwire.MethodGetTask: ownCalls, mcpwire.MethodUpdateTask: ownCalls, mcpwire.MethodCancelTask: ownCalls,
}

// OfMethod returns the requirement of an MCP method. A method that is not in the table belongs to
// the session itself or is unknown.
func OfMethod(method string) Requirement { return methods[method] }

// Methods returns the methods of MCP in the table, sorted.
func Methods() []string { return slices.Sorted(maps.Keys(methods)) }

// Operations returns the ids of the table, sorted.
func Operations() []string { return slices.Sorted(maps.Keys(operations)) }
