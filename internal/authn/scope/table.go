package scope

import (
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// Need is what an operation requires. The zero value requires a valid credential only.
type Need struct {
	// Scopes are those of which one is enough.
	Scopes []string
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
	callTools  = Need{Scopes: []string{CallTools}}
	// Whoever calls may see what became of it.
	ownCalls = Need{Scopes: []string{ReadCalls, CallTools}}
	admin    = Need{Scopes: []string{Admin}, DefaultTenant: true}
	// These concern only the tenant of whoever asks.
	tenantAdmin = Need{Scopes: []string{Admin}}
)

// operations is what each operation of the REST API requires, by its id. Calls are judged
// by server and tool as well, where they are admitted.
var operations = map[string]Need{
	"get-health": nothing, "get-livez": nothing, "get-readyz": nothing, "get-version": nothing,

	"get-metrics": wholeFleet, "get-configuration": wholeFleet,
	"list-workers": readTools, "get-events": readTools,
	"list-servers": readTools, "get-server": readTools, "list-server-tools": readTools, "list-server-resources": readTools, "list-server-resource-templates": readTools, "list-server-prompts": readTools,
	"get-server-openapi": readTools, "get-set-openapi": readTools, "get-server-pins": readTools,
	"list-sets": readTools, "get-set": readTools, "list-tools": readTools, "search-tools": readTools, "preflight": readTools, "list-switches": readTools, "convert-tools": readTools,

	"call-tool": callTools, "create-call": callTools, "create-tool-calls": callTools, "confirm-call": callTools, "confirm-calls": callTools,
	"read-resource": callTools, "get-prompt": callTools,
	"create-batch": callTools, "add-batch-calls": callTools, "seal-batch": callTools, "cancel-batch": callTools, "cancel-call": callTools, "replay-call": callTools,

	"get-call": ownCalls, "list-calls": ownCalls, "list-batches": ownCalls, "get-batch": ownCalls, "get-batch-results": ownCalls, "get-batch-events": ownCalls, "get-batch-held": ownCalls,
	"get-usage": ownCalls, // of others only with admin

	"put-set": admin, "remove-set": admin, "switch-tools": admin, "switch-tool": admin,
	"add-server": admin, "remove-server": admin, "restart-server": admin, "accept-server-pins": admin, "dry-run-policy": admin,

	"list-audit": tenantAdmin, "verify-audit": admin, "get-state": admin, "put-state": admin,

	"settle-call": tenantAdmin, "list-keys": tenantAdmin, "get-key": tenantAdmin, "create-key": tenantAdmin, "update-key": tenantAdmin, "rotate-key": tenantAdmin, "revoke-key": tenantAdmin,
}

// OfOperation returns what an operation of the REST API requires; ok is false for one that
// is not in the table.
func OfOperation(id string) (need Need, ok bool) {
	need, ok = operations[id]
	return need, ok
}

// OfMethod returns what a method of MCP requires. Methods that are not in the table are
// those of the session itself, or unknown.
func OfMethod(method string) Need {
	switch method {
	case mcpwire.MethodListTools, mcpwire.MethodListResources, mcpwire.MethodListResourceTemplates, mcpwire.MethodListPrompts,
		mcpwire.MethodListen, mcpwire.MethodSubscribe, mcpwire.MethodUnsubscribe:
		return readTools
	case schema.MethodCallTool, schema.MethodReadResource, schema.MethodGetPrompt, schema.MethodComplete:
		return callTools
	case mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask:
		return ownCalls
	}
	return nothing
}
