package web

import (
	"encoding/json"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// detailPage is one approval with its forms.
type detailPage struct {
	*question
	// Args would run now; Before was asked for, where it was edited since.
	Args, Before, Offer block
	EditLines           []line // what the edit changed
	Words               toolWords
	Fresh               bool // signed in lately enough for this rule
	Tokens              map[string]string
	Presets             []string
	Done                string
	Refusal             string // why the answer that was just given does not count
	Faults              []schema.Fault
	Reason              string // what was typed already
	Edit                string
	EditOpen, AllowOpen bool
}

// block is bytes on a page, raw and, where they are JSON, with line breaks.
type block struct {
	Label  string
	Raw    []byte
	Pretty []byte
	Digest string
	Open   bool
}

// openUpTo is how many bytes are shown without unfolding them.
const openUpTo = 16 << 10

func blockOf(label string, raw []byte, digest string) block {
	return block{Label: label, Raw: raw, Pretty: indented(raw), Digest: digest, Open: len(raw) <= openUpTo}
}

// toolWords are what a tool says of itself. Nobody checked it.
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

// Claims are the annotations as sentences.
func (t toolWords) Claims() (claims []string) {
	for _, c := range []struct {
		hint    *bool
		yes, no string
	}{
		{t.Annotations.ReadOnly, "only reads", "changes things"}, {t.Annotations.Destructive, "may destroy", "destroys nothing"},
		{t.Annotations.Idempotent, "may be repeated", "must not be repeated"}, {t.Annotations.OpenWorld, "reaches the outside", "stays inside"},
	} {
		if c.hint != nil && *c.hint {
			claims = append(claims, c.yes)
		} else if c.hint != nil {
			claims = append(claims, c.no)
		}
	}
	return claims
}

// presets are the usual reasons of a denial.
func presets() []string {
	return []string{"Nobody expects this call", "The target is wrong", "The arguments look wrong", "Not at this time", "Ask for less, then again"}
}

// newDetail makes the page of an approval for a visitor.
func newDetail(a *access, q *question, v visitor) detailPage {
	bound := q.Bound()
	p := detailPage{
		question: q, Args: blockOf("Arguments", q.Arguments, bound.ArgumentsDigest), Presets: presets(),
		Fresh: v.fresh || !q.Rule.FreshLogin, Tokens: make(map[string]string),
	}
	if len(q.Asked) > 0 {
		p.Before = blockOf("Arguments that were asked for", q.Asked, q.Binding.ArgumentsDigest)
		p.EditLines = comparedJSON(q.Asked, q.Arguments)
	}
	if len(q.Definition) > 0 {
		p.Offer = blockOf("Whole definition", q.Definition, q.Binding.ToolDefinitionDigest)
		p.Offer.Open = false
		if json.Unmarshal(q.Definition, &p.Words) != nil {
			p.Words = toolWords{}
		}
	}
	for _, k := range q.Kinds {
		if k == ledger.Approve && !q.ApprovedAt.IsZero() {
			continue // it counts already
		}
		p.Tokens[string(k)] = a.formToken(v.cookie, "/a/"+q.ID+"/"+string(k))
	}
	if p.MayAllow() && q.ApprovedAt.IsZero() {
		p.Tokens[string(allowKind)] = a.formToken(v.cookie, "/a/"+q.ID+"/"+string(allowKind))
	}
	if p.Edit = Escaped(p.Args.Pretty); p.Edit == "" {
		p.Edit = Escaped(q.Arguments)
	}
	return p
}
