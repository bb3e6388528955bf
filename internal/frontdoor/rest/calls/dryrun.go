package calls

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	operationDryRun = "dry-run-policy"
	// maxDraft limits the text of a draft, and maxDraftBody its request, in bytes.
	maxDraft     = 1 << 20
	maxDraftBody = 2*maxDraft + 4<<10
	// dryRunAge is the default age of the oldest call to examine.
	dryRunAge = 7 * 24 * time.Hour
	// dryRunChanges is the default number of changed calls to list, and maxDryRunChanges the
	// maximum.
	dryRunChanges, maxDryRunChanges = 100, 1000
)

// DryRunRequest is the body of POST /policy/dry-run.
type DryRunRequest struct {
	Policy string    `json:"policy" doc:"The draft: the text of a policy file."`
	Since  time.Time `json:"since,omitzero" doc:"Only calls admitted at or after this time; the default is 7 days ago."`
	Until  time.Time `json:"until,omitzero" doc:"Only calls admitted before this time; the default is now."`
	Limit  int       `json:"limit,omitempty" minimum:"0" maximum:"1000" doc:"The maximum number of changed calls to list; the default is 100. All are counted."`
}

// dryRunPolicy serves POST /policy/dry-run.
func (c *handlers) dryRunPolicy(x *httpapi.Exchange, r *http.Request) (*calls.DryRun, error) {
	members, err := x.ReadMembers(r, maxDraftBody, 4, "policy", "since", "until", "limit")
	if err != nil {
		return nil, err
	}
	q, err := readDryRun(members, time.Now())
	if err != nil {
		return nil, err
	}
	return c.calls.DryRun(r.Context(), q)
}

// readDryRun reads the members of the body.
func readDryRun(members map[string]json.RawMessage, now time.Time) (q calls.DryRunQuery, err error) {
	text, limit := "", dryRunChanges
	q.From, q.To = now.Add(-dryRunAge).UTC(), now.UTC()
	if err := cmp.Or(
		httpapi.ReadMember(members, "policy", true, "a string, the text of a policy file", &text),
		httpapi.ReadMember(members, "since", false, "a time such as 2026-01-02T15:04:05Z", &q.From),
		httpapi.ReadMember(members, "until", false, "a time such as 2026-01-02T15:04:05Z", &q.To),
		httpapi.ReadMember(members, "limit", false, "a whole number", &limit),
	); err != nil {
		return q, err
	}
	if limit < 0 || limit > maxDryRunChanges {
		return q, schema.Errorf(schema.KindInvalidRequest, "The member limit must be from 0 to %d.", maxDryRunChanges)
	}
	q.MaxChanges = limit
	q.Policy, err = readDraft(text)
	return q, err
}

// readDraft parses the text of a draft.
func readDraft(text string) (*risk.Policy, error) {
	if len(text) > maxDraft {
		return nil, schema.Errorf(schema.KindTooLarge, "The draft exceeds the limit of %d bytes.", maxDraft)
	}
	draft, err := risk.Parse([]byte(text), "policy")
	return draft, draftError(err)
}

// draftError returns the answer to a draft with faults, or nil if it has none.
func draftError(err error) error {
	var faults *risk.Faults
	if !errors.As(err, &faults) {
		return err
	}
	e := schema.Errorf(schema.KindInvalidArguments, "The draft of the policy is not valid: %s", faults.List[0].Message)
	for _, f := range faults.List {
		message := f.Message
		if f.Path != "" {
			message = f.Path + ": " + message
		}
		if f.Line > 0 {
			message = fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, message)
		}
		e.Faults = append(e.Faults, schema.Fault{Pointer: "/policy", Message: message})
	}
	return e
}

func opDryRun(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/policy/dry-run", operationDryRun, openapi.TagCalls, "Dry-run a draft policy",
		"Applies a draft of a policy to the recorded calls of all callers, and compares its decisions with the recorded ones: counts for each rule, and the calls whose decision changes. The policy in force does not change. "+
			"The draft is evaluated as for real calls, with the current definitions of the tools. If a rule needs arguments that are not stored, the decision is counted as unknown.", http.StatusUnprocessableEntity)
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[DryRunRequest]()), true, "The draft and the period.", map[string]any{
		"policy": "rules:\n  - name: no-deletes\n    match: {tool: \"delete_*\"}\n    deny: nothing is deleted\n", "since": "2026-01-02T03:04:05Z",
	})
	return op
}
