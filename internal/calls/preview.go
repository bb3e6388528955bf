package calls

import (
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Preview returns what the policy says of a call of the tool with no arguments. The arguments of
// a call may change it, in both directions. Nothing is run, held or recorded.
func (c *Calls) Preview(tool *catalog.Tool, who schema.Principal) risk.Assessment {
	return c.o.Gate.Preview(tool, who)
}

// Judge returns what judges what is shown to a principal, nil where everything is; see
// [admission.Gate.Judge].
func Judge(c *Calls, who *schema.Principal) catalog.Judge { return c.o.Gate.Judge(who) }
