package scope

import (
	"maps"
	"slices"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// Need is what an operation requires. The zero value requires a valid credential only.
type Need struct {
	// Scopes are those of which one is enough.
	Scopes []string
	// InDefault are the scopes of which one is enough in the default tenant, in place of Scopes:
	// what belongs to that tenant is the installation's.
	InDefault []string
	// DefaultTenant says that whoever asks must be of it, because the operation changes what
	// all tenants share.
	DefaultTenant bool
	// AllServers says that the answer tells of servers whatever the tenant of whoever asks
	// sees, so it is only for tenants that see every server.
	AllServers bool
}

var (
	nothing    = Need{}
	readTools  = Need{Scopes: []string{ReadTools}}
	wholeFleet = Need{Scopes: []string{ReadTools}, AllServers: true}
	listTools  = Need{Scopes: []string{ReadTools, ListTools}}
	callTools  = Need{Scopes: []string{CallTools}}
	// Whoever calls may see what became of it.
	ownCalls = Need{Scopes: []string{ReadCalls, CallTools}}
	admin    = Need{Scopes: []string{Admin}, DefaultTenant: true}
	// These concern only the tenant of whoever asks.
	tenantAdmin = Need{Scopes: []string{Admin, AdminTenant}}
	// The sets of the default tenant are the installation's.
	ownSets = Need{Scopes: []string{Admin, AdminTenant}, InDefault: []string{Admin}}
	audits  = Need{Scopes: []string{Admin, AdminTenant, ReadAllCalls}}
)

// operations is what each operation of the REST API requires, by its id. Calls are judged
// by server and tool as well, where they are admitted.
var operations = map[string]Need{
	"get-health": nothing, "get-livez": nothing, "get-readyz": nothing, "get-version": nothing,

	"get-metrics": wholeFleet, "list-front-doors": wholeFleet, "get-configuration": wholeFleet,
	"list-evaluations": wholeFleet, "get-evaluation": wholeFleet, "get-evaluation-page": wholeFleet, // they tell of tools of every server
	"list-workers": readTools, "get-events": readTools,
	"get-server-pins": readTools, "list-switches": readTools,
	"list-servers": listTools, "get-server": listTools, "list-server-tools": listTools, "list-server-resources": listTools, "list-server-resource-templates": listTools, "list-server-prompts": listTools,
	"get-server-openapi": listTools, "get-set-openapi": listTools,
	"list-sets": listTools, "get-set": listTools, "list-tools": listTools, "search-tools": listTools, "preflight": listTools, "test-policy": listTools, "convert-tools": listTools,

	"call-tool": callTools, "create-call": callTools, "create-tool-calls": callTools, "confirm-call": callTools, "confirm-calls": callTools,
	"read-resource": callTools, "get-prompt": callTools,
	"create-batch": callTools, "add-batch-calls": callTools, "seal-batch": callTools, "cancel-batch": callTools, "cancel-call": callTools, "replay-call": callTools,

	"get-call": ownCalls, "list-calls": ownCalls, "list-batches": ownCalls, "get-batch": ownCalls, "get-batch-results": ownCalls, "get-batch-events": ownCalls, "get-batch-held": ownCalls,
	"get-usage": {Scopes: []string{ReadCalls, CallTools, AdminTenant}}, // of others only as in package usage

	"put-set": ownSets, "remove-set": ownSets,
	"switch-tools": admin, "switch-tool": admin,
	"add-server": admin, "remove-server": admin, "restart-server": admin, "drain-worker": admin, "accept-server-pins": admin, "dry-run-policy": admin,

	"list-audit":   audits,                       // of the own tenant
	"list-tenants": audits, "get-tenant": audits, // likewise; all for the default one
	"verify-audit": {Scopes: []string{Admin, ReadAllCalls}, DefaultTenant: true},
	"erase-tenant": admin,
	"get-state":    admin, "put-state": admin,

	"settle-call": tenantAdmin, "list-keys": tenantAdmin, "get-key": tenantAdmin, "create-key": tenantAdmin, "update-key": tenantAdmin, "rotate-key": tenantAdmin, "revoke-key": tenantAdmin,
}

// OfOperation returns what an operation of the REST API requires; ok is false for one that
// is not in the table.
func OfOperation(id string) (need Need, ok bool) {
	need, ok = operations[id]
	return need, ok
}

// methods is what the methods of MCP require that are not those of the session itself.
var methods = map[string]Need{
	mcpwire.MethodListTools: listTools, mcpwire.MethodListResources: listTools, mcpwire.MethodListResourceTemplates: listTools, mcpwire.MethodListPrompts: listTools,
	mcpwire.MethodListen: listTools, mcpwire.MethodSubscribe: listTools, mcpwire.MethodUnsubscribe: listTools,
	schema.MethodCallTool: callTools, schema.MethodReadResource: callTools, schema.MethodGetPrompt: callTools, schema.MethodComplete: callTools,
	mcpwire.MethodGetTask: ownCalls, mcpwire.MethodUpdateTask: ownCalls, mcpwire.MethodCancelTask: ownCalls,
}

// OfMethod returns what a method of MCP requires. Methods that are not in the table are
// those of the session itself, or unknown.
func OfMethod(method string) Need { return methods[method] }

// Methods returns the methods of MCP in the table, sorted.
func Methods() []string { return slices.Sorted(maps.Keys(methods)) }

// Operations returns the ids of the table, sorted.
func Operations() []string { return slices.Sorted(maps.Keys(operations)) }
