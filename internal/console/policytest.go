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

// testView is the form of the policy page that tests a call, and what the policy decides on it.
type testView struct {
	Tool           string // SERVER/TOOL
	Arguments      string
	Drafted        bool // it is judged by the draft on the page
	ToolFault      string
	ArgumentsFault string
	Refusal        string
	Result         *callyard.PolicyDecision
	Expires        string // how long the call would be held
}

// held is how long a call with the approval would be held.
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

// readTest returns the form as it was filled in.
func readTest(r *http.Request) testView {
	f := r.PostForm
	return testView{Tool: strings.TrimSpace(f.Get("call")), Arguments: strings.ReplaceAll(f.Get("arguments"), "\r\n", "\n"), Drafted: f.Get("drafted") != ""}
}

// testCall shows what the policy decides on a call. Nothing is run.
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

// request is the body of the request, with the draft where it is asked for; nil, with what is
// wrong noted at the field, where the form cannot be sent.
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
	if err != nil { // of texts and valid JSON
		t.ArgumentsFault = "This cannot be sent."
		return nil
	}
	return body
}

// refused notes at the field that it is about why the front door does not answer. It returns
// the status of the page.
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
