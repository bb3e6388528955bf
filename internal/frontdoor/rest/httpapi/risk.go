package httpapi

import "github.com/callyard/callyard/pkg/schema"

// Risk says a level in the words of MCP Bridge; all are empty where none is set. sandbox
// is how calls of high risk run, nil where that is a container or not known.
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
