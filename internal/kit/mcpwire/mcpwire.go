// Package mcpwire defines the names of the Model Context Protocol that more than one package
// reads or writes: revisions, methods, HTTP headers, members of _meta, error codes, and the
// encoding of an argument in a header (x-mcp-header, SEP-2243).
//
// Our clients and servers that use it agree with each other, and its values are those of the
// specification. Tests contain the literals, so that a mistake here makes them fail. The four
// methods that a [schema.Call] can have are constants of pkg/schema, which has no imports.
//
// It does not implement any method.
package mcpwire

import (
	"strconv"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// Revisions of the protocol. They are dates and sort as text. The modern era has no
// sessions and begins with Modern; LegacyNewest is the last revision before it.
const (
	Modern       = "2026-07-28"
	LegacyNewest = "2025-11-25"
)

// Legacy returns the revisions of the legacy era, newest first.
func Legacy() []string { return []string{LegacyNewest, "2025-06-18", "2025-03-26", "2024-11-05"} }

// IsModern reports whether a revision belongs to the modern era.
func IsModern(revision string) bool { return revision >= Modern }

// HTTP headers, in canonical form.
const (
	HeaderProtocolVersion = "Mcp-Protocol-Version"
	HeaderSessionID       = "Mcp-Session-Id"
	HeaderMethod          = "Mcp-Method"
	HeaderName            = "Mcp-Name"
	headerParamPrefix     = "Mcp-Param-"
)

// Keys of _meta, and IDs of extensions. Keys with the prefix MetaPrefix belong to the protocol.
const (
	MetaPrefix             = "io.modelcontextprotocol/"
	MetaProtocolVersion    = MetaPrefix + "protocolVersion"
	MetaClientCapabilities = MetaPrefix + "clientCapabilities"
	MetaClientInfo         = MetaPrefix + "clientInfo"
	MetaServerInfo         = MetaPrefix + "serverInfo"
	MetaLogLevel           = MetaPrefix + "logLevel"
	MetaSubscriptionID     = MetaPrefix + "subscriptionId"

	ExtensionTasks = MetaPrefix + "tasks"
	ExtensionUI    = MetaPrefix + "ui"
)

// Requests of clients, in addition to those of pkg/schema.
const (
	MethodInitialize            = "initialize"
	MethodPing                  = "ping"
	MethodDiscover              = "server/discover"
	MethodListTools             = "tools/list"
	MethodListResources         = "resources/list"
	MethodListResourceTemplates = "resources/templates/list"
	MethodListPrompts           = "prompts/list"
	MethodSetLevel              = "logging/setLevel"
	MethodSubscribe             = "resources/subscribe"
	MethodUnsubscribe           = "resources/unsubscribe"
	MethodListen                = "subscriptions/listen"
	MethodGetTask               = "tasks/get"
	MethodUpdateTask            = "tasks/update"
	MethodCancelTask            = "tasks/cancel"
)

// Requests of servers for input from the client.
const (
	MethodElicit    = "elicitation/create"
	MethodSample    = "sampling/createMessage"
	MethodListRoots = "roots/list"
)

// Notifications.
const (
	NotifyInitialized      = "notifications/initialized"
	NotifyCancelled        = "notifications/cancelled"
	NotifyProgress         = "notifications/progress"
	NotifyMessage          = "notifications/message"
	NotifyToolsChanged     = "notifications/tools/list_changed"
	NotifyResourcesChanged = "notifications/resources/list_changed"
	NotifyPromptsChanged   = "notifications/prompts/list_changed"
	NotifyRootsChanged     = "notifications/roots/list_changed" // of a client in the legacy era
	NotifyResourceUpdated  = "notifications/resources/updated"
	NotifyAcknowledged     = "notifications/subscriptions/acknowledged"
	NotifyTask             = "notifications/tasks"
	NotifyDraining         = "notifications/callyard/draining" // Callyard's own: an attached program takes no new calls
)

// Error codes of JSON-RPC and of MCP. CodeUnavailable is specific to Callyard, outside of the range
// that JSON-RPC and MCP reserve.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeNoSession          = -32001 // legacy era
	CodeNoResource         = -32002 // legacy era
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	CodeURLElicitation     = -32042 // URLElicitationRequiredError of 2025-11-25; reserved from 2026-07-28 on
	CodeUnavailable        = -31503
)

// AppendError appends the member "error" of a JSON-RPC message, without data.
func AppendError(dst []byte, code int64, message string) []byte {
	dst = strconv.AppendInt(append(dst, `"error":{"code":`...), code, 10)
	return append(rawjson.AppendText(append(dst, `,"message":`...), message), '}')
}

// AsksClient reports whether a server uses the method to request input from its client.
func AsksClient(method string) bool {
	return method == MethodElicit || method == MethodSample || method == MethodListRoots
}
