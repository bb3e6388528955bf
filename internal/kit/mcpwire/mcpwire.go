// Package mcpwire holds the words of the Model Context Protocol that more than one package
// reads or writes: revisions, methods, HTTP headers, members of _meta, error codes, and how
// an argument is repeated in a header (x-mcp-header, SEP-2243).
//
// It promises that a client and a server of ours that use it agree, and that its values are
// those of the specification. Tests write the literals, so that a slip here fails them.
// The four methods that a [schema.Call] can have are constants of pkg/schema, which imports
// nothing.
//
// It refuses to know what a method does.
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

// Keys of _meta, and ids of extensions. Those that begin with MetaPrefix are the
// protocol's own.
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

// Requests of clients, beyond those of pkg/schema.
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

// Requests of servers, for input from the client.
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
	NotifyResourceUpdated  = "notifications/resources/updated"
	NotifyAcknowledged     = "notifications/subscriptions/acknowledged"
	NotifyTask             = "notifications/tasks"
	NotifyDraining         = "notifications/callyard/draining" // ours: an attached program takes no new calls
)

// Error codes of JSON-RPC and of MCP. CodeUnavailable is one of Callyard's own, which lie
// outside of the range that JSON-RPC and MCP reserve.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeNoSession          = -32001 // of the legacy era
	CodeNoResource         = -32002 // of the legacy era
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

// AsksClient reports whether a method is one by which a server asks its client for input.
func AsksClient(method string) bool {
	return method == MethodElicit || method == MethodSample || method == MethodListRoots
}
