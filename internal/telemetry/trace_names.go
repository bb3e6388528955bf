package telemetry

import (
	// The last version with the keys of MCP and GenAI, which moved to another module later. Nothing
	// else uses this version.
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Key is the name of a span attribute. No other keys are used.
type Key string

// Keys of the semantic conventions of OpenTelemetry.
const (
	KeyHTTPMethod  = Key(semconv.HTTPRequestMethodKey)
	KeyHTTPRoute   = Key(semconv.HTTPRouteKey)
	KeyTransport   = Key(semconv.NetworkTransportKey)
	KeyMCPMethod   = Key(semconv.McpMethodNameKey)
	KeyMCPVersion  = Key(semconv.McpProtocolVersionKey)
	KeyRequestID   = Key(semconv.JSONRPCRequestIDKey)
	KeyRPCStatus   = Key(semconv.RPCResponseStatusCodeKey)
	KeyTool        = Key(semconv.GenAIToolNameKey)
	KeyOperation   = Key(semconv.GenAIOperationNameKey)
	KeySystem      = Key(semconv.MessagingSystemKey)
	KeyDestination = Key(semconv.MessagingDestinationNameKey)
	KeyStep        = Key(semconv.MessagingOperationNameKey)
	KeyStepType    = Key(semconv.MessagingOperationTypeKey)

	keyStatus = Key(semconv.HTTPResponseStatusCodeKey)
	keyError  = Key(semconv.ErrorTypeKey)
)

// Keys of Callyard.
const (
	KeyCall     Key = "callyard.call.id"
	KeyApproval Key = "callyard.approval.id"
	KeyBatch    Key = "callyard.batch.id"
	KeyServer   Key = "callyard.server"
	KeyWorker   Key = "callyard.worker"
	KeyAttempt  Key = "callyard.attempt"
	KeyAdmitted Key = "callyard.admitted" // run, held, stored or refused
	KeyDecision Key = "callyard.decision"

	KeyEnvironment Key = "callyard.environment"
	KeyEpisode     Key = "callyard.episode.id"
	KeyTask        Key = "callyard.episode.task"
	KeySteps       Key = "callyard.episode.steps"
	KeyOutcome     Key = "callyard.episode.outcome" // done, truncated, masked or closed
	KeyMasked      Key = "callyard.episode.masked"  // the reason
)

// Values of keys with a small set of values.
const (
	ExecuteTool = "execute_tool"
	NATS        = "nats"

	toolFailed = "tool_error"
)
