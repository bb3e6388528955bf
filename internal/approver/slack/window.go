package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	windowReason = "reason"
	maxReason    = 1000 // characters
)

// modalData is the private metadata of a modal: its purpose and call. Slack stores it and sends it
// back, signed. It contains no secret.
type modalData struct {
	Ref     string              `json:"ref"`
	Kind    ledger.DecisionKind `json:"kind"`
	Channel string              `json:"channel"`
}

// askReason opens the modal that asks for a reason.
func (d *decisions) askReason(ctx context.Context, k click, a *ledger.Approval) error {
	meta, err := json.Marshal(modalData{Ref: k.ref.String(), Kind: k.kind, Channel: k.channel})
	if err != nil {
		return err
	}
	title, submit := "Deny the call", "Deny"
	if k.kind == ledger.Approve {
		title, submit = "Approve the call", "Approve"
	}
	input := api.NewPlainTextInputBlockElement(plain("Comment"), windowReason)
	input.Multiline, input.MaxLength = true, maxReason
	subject := clean(a.Binding.Tool) + " on " + clean(string(a.Binding.Server))
	return d.open(ctx, k, api.ModalViewRequest{
		Type: api.VTModal, CallbackID: windowReason, PrivateMetadata: string(meta), Title: plain(title), Submit: plain(submit), Close: plain("Cancel"),
		Blocks: api.Blocks{BlockSet: []api.Block{
			api.NewRichTextBlock("about", api.NewRichTextSection(bold(subject), text("\nThe comment is stored with the decision and shown to everybody who can see the request."))),
			api.NewInputBlock(windowReason, plain("Comment"), nil, input),
		}},
	})
}

// submission parses the submission of that modal.
func (k *click) submission(v *api.View) (ok bool) {
	var e modalData
	if v.CallbackID != windowReason || json.Unmarshal([]byte(v.PrivateMetadata), &e) != nil || v.State == nil {
		return false
	}
	k.channel, k.kind, k.reason = e.Channel, e.Kind, v.State.Values[windowReason][windowReason].Value
	k.ref, ok = parseReference(e.Ref)
	return ok && k.reason != "" && utf8.RuneCountInString(k.reason) <= maxReason && (k.kind == ledger.Approve || k.kind == ledger.Deny)
}

// showAll opens a modal with all arguments.
func (d *decisions) showAll(ctx context.Context, k click, a *ledger.Approval) error {
	q, err := d.cards.read(ctx, a)
	if err != nil {
		return err
	}
	if len(q.args) > unfolded {
		return schema.Errorf(schema.KindTooLarge, "The arguments are too long for Slack; review them on the request's page: %s", q.page)
	}
	blocks := []api.Block{api.NewRichTextBlock("about", api.NewRichTextSection(bold(clean(a.Binding.Tool)+" on "+clean(string(a.Binding.Server))), text("\n"+q.sum())))}
	for i, rest := 0, q.args; rest != ""; i++ {
		part := truncate.Head(rest, chunk)
		blocks = append(blocks, api.NewRichTextBlock(fmt.Sprintf("part%d", i), preformatted(part)))
		rest = rest[len(part):]
	}
	return d.open(ctx, k, api.ModalViewRequest{Type: api.VTModal, Title: plain("Arguments"), Close: plain("Close"), Blocks: api.Blocks{BlockSet: blocks}})
}

func (d *decisions) open(ctx context.Context, k click, v api.ModalViewRequest) error {
	if err := d.client.open(ctx, k.trigger, v); err != nil {
		return schema.Errorf(schema.KindUnavailable, "Slack did not open the window; click again, or open the request: %s (%w)", d.o.Page(k.ref.id), err)
	}
	return nil
}
