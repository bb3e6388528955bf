package web

import (
	"encoding/json"

	"github.com/callyard/callyard/internal/kit/textdiff"
	"github.com/callyard/callyard/internal/kit/visible"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// detailPage is one approval with its forms.
type detailPage struct {
	*approvalView
	// Args are the effective arguments. Before are the requested ones if they were edited.
	Args, Before, Offer block
	EditLines           []textdiff.Line // the diff of the edit
	Words               toolWords
	Fresh               bool // the sign-in is recent enough for this rule
	Tokens              map[string]string
	Presets             []string
	Done                string
	Refusal             string // the reason why the submitted decision was refused
	Faults              []schema.Fault
	Reason              string  // the submitted comment
	Entered             []entry // the submitted fields, if the page does not have their form any more
	Edit                string
	EditOpen, AllowOpen bool
}

// block is bytes on a page: raw and, if they are JSON, indented and with readable escapes.
type block struct {
	Label  string
	Raw    []byte
	Pretty []byte
	Digest string
}

func blockOf(label string, raw []byte, digest string) block {
	return block{Label: label, Raw: raw, Pretty: visible.Readable(indented(raw)), Digest: digest}
}

// toolWords is the description that a server gives of its tool. It is not verified.
type toolWords struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Annotations struct {
		ReadOnly    *bool `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
		Idempotent  *bool `json:"idempotentHint"`
		OpenWorld   *bool `json:"openWorldHint"`
	} `json:"annotations"`
}

// Claims returns the annotations in words.
func (t toolWords) Claims() (claims []string) {
	for _, c := range []struct {
		hint    *bool
		yes, no string
	}{
		{t.Annotations.ReadOnly, "read-only", "changes data"}, {t.Annotations.Destructive, "destructive", "not destructive"},
		{t.Annotations.Idempotent, "idempotent", "not idempotent"}, {t.Annotations.OpenWorld, "accesses external systems", "does not access external systems"},
	} {
		if c.hint != nil && *c.hint {
			claims = append(claims, c.yes)
		} else if c.hint != nil {
			claims = append(claims, c.no)
		}
	}
	return claims
}

// presets returns the reasons for a denial that the pages offer.
func presets() []string {
	return []string{"Unexpected call", "Wrong target", "Wrong arguments", "Wrong time", "Too broad"}
}

// newDetail builds the page of an approval for a visitor.
func newDetail(a *access, q *approvalView, v visitor) detailPage {
	bound := q.Bound()
	p := detailPage{
		approvalView: q, Args: blockOf("Arguments", q.Arguments, bound.ArgumentsDigest), Presets: presets(),
		Fresh: v.fresh || !q.Rule.FreshLogin, Tokens: make(map[string]string),
	}
	if len(q.Asked) > 0 {
		p.Before = blockOf("Requested arguments", q.Asked, q.Binding.ArgumentsDigest)
		p.EditLines = textdiff.JSON(q.Asked, q.Arguments)
	}
	if len(q.Definition) > 0 {
		p.Offer = blockOf("Tool definition", q.Definition, q.Binding.ToolDefinitionDigest)
		if json.Unmarshal(q.Definition, &p.Words) != nil {
			p.Words = toolWords{}
		}
	}
	for _, k := range q.Kinds {
		if k == ledger.Approve && !q.ApprovedAt.IsZero() {
			continue // already counted
		}
		p.Tokens[string(k)] = a.formToken(v.cookie, "/a/"+string(q.ID)+"/"+string(k))
	}
	if p.MayAllow() && q.ApprovedAt.IsZero() {
		p.Tokens[string(allowKind)] = a.formToken(v.cookie, "/a/"+string(q.ID)+"/"+string(allowKind))
	}
	if p.Edit = visible.Escaped(indented(q.Arguments)); p.Edit == "" {
		p.Edit = visible.Escaped(q.Arguments)
	}
	return p
}
