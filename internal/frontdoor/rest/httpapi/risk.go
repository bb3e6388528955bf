package httpapi

import "github.com/callyard/callyard/pkg/schema"

// Risk returns a level in the terms of MCP Bridge; all values are empty if no level is set. sandbox
// is the sandbox of high-risk calls, or nil if that is a container or not known.
func Risk(level int, sandbox *schema.Sandbox) (int, string, *bool) {
	inDocker := level == 3 && (sandbox == nil || sandbox.Isolation == schema.IsolationContainer)
	switch level {
	case 1:
		return level, "Low risk - Standard execution", &inDocker
	case 2:
		return level, "Medium risk - Requires confirmation", &inDocker
	case 3:
		return level, "High risk - Docker execution required", &inDocker
	}
	return 0, "", nil
}
