package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// testView is the form that tests a call against the policy, with the decision.
type testView struct {
	Tool           string // SERVER/TOOL
	Arguments      string
	Drafted        bool // evaluate it with the draft on the page
	ToolFault      string
	ArgumentsFault string
	Refusal        string
	Result         *callyard.PolicyDecision
	Expires        string // the time for which the call would be held
}

// held returns the time for which a call that needs the approval would be held.
func held(a *callyard.PolicyDecisionApproval) string {
	if a == nil {
		return ""
	}
	text := (time.Duration(a.ExpiresMs) * time.Millisecond).String()
	for _, zero := range [][2]string{{"m0s", "m"}, {"h0m", "h"}} {
		if rest, found := strings.CutSuffix(text, zero[0]); found {
			text = rest + zero[1]
		}
	}
	return text
}

// readTest returns the submitted form.
func readTest(r *http.Request) testView {
	f := r.PostForm
	return testView{Tool: strings.TrimSpace(f.Get("call")), Arguments: strings.ReplaceAll(f.Get("arguments"), "\r\n", "\n"), Drafted: f.Get("drafted") != ""}
}

// testCall shows the policy's decision on a call. It runs nothing.
func (c policyPages) testCall(w http.ResponseWriter, r *http.Request, v Visit, page *policyPage) error {
	t := &page.Test
	status, body := http.StatusOK, t.request(page.Draft.Text)
	switch {
	case len(t.Arguments) > c.o.ArgumentBytes:
		status, t.ArgumentsFault = http.StatusRequestEntityTooLarge, fmt.Sprintf("The arguments exceed the limit of %d bytes.", c.o.ArgumentBytes)
	case body == nil:
		status = http.StatusUnprocessableEntity
	default:
		result, err := get[callyard.PolicyDecision](r.Context(), c.Console, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
			return client.TestPolicyWithBody(ctx, "application/json", bytes.NewReader(body))
		})
		if schema.KindOf(err) == schema.KindUnauthenticated {
			return c.orKey(w, r, err)
		}
		if err != nil {
			status = page.refused(err)
		} else {
			t.Result, t.Expires = &result, held(result.Approval)
		}
	}
	return c.showPolicy(w, r, v, status, page)
}

// request returns the body of the request, with the draft if it is to be used. It returns nil, and
// sets the error of the field, if the form is invalid.
func (t *testView) request(draft string) []byte {
	server, tool, _ := strings.Cut(t.Tool, "/")
	if server == "" || tool == "" {
		t.ToolFault = "Name a tool as SERVER/TOOL."
	}
	arguments := t.Arguments
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	if !json.Valid([]byte(arguments)) {
		t.ArgumentsFault = "This is not valid JSON."
	}
	if t.ToolFault+t.ArgumentsFault != "" {
		return nil
	}
	asked := struct {
		Server    string          `json:"server"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
		Policy    *string         `json:"policy,omitempty"`
	}{server, tool, json.RawMessage(arguments), nil}
	if t.Drafted {
		asked.Policy = &draft
	}
	body, err := plainjson.Marshal(asked)
	if err != nil { // cannot fail for strings and valid JSON
		t.ArgumentsFault = "This cannot be sent."
		return nil
	}
	return body
}

// refused shows an error of the front door at the field that caused it. It returns the HTTP status
// of the page.
func (p *policyPage) refused(err error) int {
	d, faults := problem.Of(err), schema.AsError(err).Faults
	switch kind := schema.KindOf(err); {
	case kind == schema.KindNotFound:
		p.Test.ToolFault = d.Detail
	case len(faults) > 0 && faults[0].Pointer == "/policy":
		p.Draft.Refusal, p.Draft.Faults = d.Detail, faults
		p.Test.Refusal = "The draft below has faults."
	case kind == schema.KindInvalidRequest:
		p.Test.ArgumentsFault = d.Detail
	default:
		p.Test.Refusal = d.Detail
	}
	return d.Status
}
