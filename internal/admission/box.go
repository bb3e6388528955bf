package admission

import (
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// boxable says why a call that must run in a container cannot, nil where some
// worker has one for it. The worker judges the call again and never runs it with
// less, so this is for the sentence and not for the safety.
func boxable(call *schema.Call, box *schema.Box, a *risk.Assessment) error {
	switch reasons := strings.Join(a.Reasons, "; "); {
	case box == nil:
		return schema.Errorf(schema.KindForbidden, "This call must run in a container, and server %q has none; it is not run with less. Add a docker section with an image to the entry of the server. (%s)", call.Server, reasons)
	case a.Container && box.Isolation != schema.IsolationContainer:
		return schema.Errorf(schema.KindForbidden, "The policy asks for a container by name, and calls of server %q run in what is weaker (%s); it is not run with less. Add a docker section with an image to the entry of the server. (%s)", call.Server, box.Isolation, reasons)
	case !box.Ready:
		e := schema.Errorf(schema.KindUnavailable, "This call must run in a %s, and none can be had now; it is not run with less: %s (%s)", place(box.Isolation), box.Error, reasons)
		e.Retryable, e.RetryAfter = true, time.Second
		return e
	}
	return nil
}

// place is what a call runs in, for people.
func place(isolation string) string {
	if isolation == schema.IsolationBubblewrap {
		return "sandbox"
	}
	return "container"
}
