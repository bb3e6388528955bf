package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// dryRunTimes maps the options of the form to the time range for which a draft is evaluated.
var dryRunTimes = map[string]time.Duration{"1h": time.Hour, "1d": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

// draftView is the draft of a policy, with the decisions it would have made.
type draftView struct {
	Token   string
	Text    string
	Since   string // a key of dryRunTimes
	Refusal string
	Faults  []schema.Fault
	Result  *callyard.PolicyDryRun
}

// tryDraft shows the decisions that a draft of a policy would have made on recorded calls, or tests
// the call in the form.
func (c policyPages) tryDraft(w http.ResponseWriter, r *http.Request, v Visit) error {
	f := r.PostForm
	page := policyPage{Test: readTest(r), Draft: draftView{Token: v.Token(Root + "/policy"), Text: strings.ReplaceAll(f.Get("draft"), "\r\n", "\n"), Since: f.Get("since")}}
	d := &page.Draft
	ago, ok := dryRunTimes[d.Since]
	if !ok {
		d.Since, ago = "7d", dryRunTimes["7d"]
	}
	if f.Get("do") == "test" {
		return c.testCall(w, r, v, &page)
	}
	since := c.o.Now().Add(-ago).UTC()
	result, err := get[callyard.PolicyDryRun](r.Context(), c.Console, v, with(api.DryRunPolicy, callyard.PolicyDryRunRequest{Policy: d.Text, Since: &since}))
	status := http.StatusOK
	switch kind := schema.KindOf(err); {
	case kind == schema.KindUnauthenticated:
		return c.orKey(w, r, err)
	case err != nil:
		p := problem.Of(err)
		status, d.Refusal, d.Faults = p.Status, p.Detail, schema.AsError(err).Faults
	default:
		result.Rules = slices.DeleteFunc(result.Rules, func(r callyard.PolicyDryRunRule) bool {
			return r.Rule == "" && r.Allowed+r.Held+r.Refused+r.Unknown == 0
		})
		d.Result = &result
	}
	return c.showPolicy(w, r, v, status, &page)
}

// showPolicy writes the page after one of its forms was submitted.
func (c policyPages) showPolicy(w http.ResponseWriter, r *http.Request, v Visit, status int, page *policyPage) error {
	if err := c.inForce(r.Context(), v, page); err != nil {
		return c.orKey(w, r, err)
	}
	return c.render(w, v, status, "policy", view{Title: "Policy", Here: Root + "/policy", Page: *page})
}
