package schema

import "slices"

// logLevels are the levels of MCP log messages (RFC 5424) in ascending severity.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// IsLogLevel reports whether level is a log level of MCP.
func IsLogLevel(level string) bool { return slices.Contains(logLevels, level) }

// LogLevelCovers reports whether a receiver with the minimum level wanted receives messages of
// the level level. It is false if either is not a log level of MCP.
func LogLevelCovers(wanted, level string) bool {
	from := slices.Index(logLevels, wanted)
	return from >= 0 && slices.Index(logLevels, level) >= from
}
