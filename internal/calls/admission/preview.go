package admission

import (
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Preview assesses a hypothetical call of the tool without arguments.
func (g *Gate) Preview(tool *catalog.Tool, who schema.Principal) risk.Assessment {
	return g.assess(tool, &schema.Call{Server: tool.Server, Tool: tool.Name, Arguments: []byte(`{}`), Principal: who})
}
