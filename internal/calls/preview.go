package calls

import (
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Preview returns the policy's assessment of a call of the tool without arguments. The arguments
// of a real call may make it stricter or more lenient. Nothing is run, held or recorded.
func (c *Calls) Preview(tool *catalog.Tool, who schema.Principal) risk.Assessment {
	return c.o.Gate.Preview(tool, who)
}

// Judge returns the visibility filter of a principal, or nil if everything is visible; see
// [admission.Gate.Judge].
func Judge(c *Calls, who *schema.Principal) catalog.Judge { return c.o.Gate.Judge(who) }
