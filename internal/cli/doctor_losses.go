package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
)

// losses notes the losses that were accepted for a damaged data folder. They are not a fault: an
// operator accepted them, and the folder lists them permanently.
func (x *examination) losses(ctx context.Context) {
	var health callyard.Health
	if _, err := x.look(ctx, x.c, x.c.api.GetHealth, &health); err != nil || health.AcceptedLosses == nil {
		return // the cause is already reported
	}
	l := health.AcceptedLosses
	where := ""
	if len(l.Streams) > 0 {
		where = ", with messages of " + strings.Join(l.Streams, ", ")
	}
	x.note("data folder", fmt.Sprintf("%d damaged files were accepted as lost%s, the last at %s: earlier calls without a result are unknown, check their effects (callyard calls --state unknown); losses.json in the folder lists the files",
		l.Files, where, l.Latest.UTC().Format(time.RFC3339)))
}
