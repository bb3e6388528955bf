package schema

import "slices"

// logLevels are those of MCP log messages (RFC 5424), the least severe first.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// IsLogLevel reports whether MCP has a log level of that name.
func IsLogLevel(level string) bool { return slices.Contains(logLevels, level) }

// LogLevelCovers reports whether a receiver that wants log messages of at least the level
// wanted gets one of the level level. It is false where MCP does not have one of the two.
func LogLevelCovers(wanted, level string) bool {
	from := slices.Index(logLevels, wanted)
	return from >= 0 && slices.Index(logLevels, level) >= from
}
