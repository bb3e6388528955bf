package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/schema"
)

// private is the text of people and servers in a record. It is sealed in [Approval.Private] if there are
// data keys. Arguments and results are sealed where they are stored.
type private struct {
	Error  *schema.Error `json:"error,omitempty"`
	Edited string        `json:"edited,omitempty"`  // reason of the edit
	Said   []string      `json:"reasons,omitempty"` // reasons of the decisions
}

// kindPrivate is the kind for sealing private. For other data it is "approval" and their kind.
const kindPrivate = "approval private"

// encode returns the record in stored form.
func (r *Records) encode(ctx context.Context, a *Approval) ([]byte, error) {
	stored := a
	if p := privateOf(a); r.ring != nil && p != nil {
		text, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encoding the approval: %w", err)
		}
		stored = a.Clone()
		stored.put(&private{Said: make([]string, len(a.Decisions))})
		if stored.Private, err = r.ring.Seal(ctx, a.Binding.Tenant, text, kindPrivate, string(a.ID)); err != nil {
			return nil, err
		}
	}
	head, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encoding the approval: %w", err)
	}
	return head, nil
}

// privateOf returns the text of a record to seal, or nil if there is none.
func privateOf(a *Approval) *private {
	p := &private{Error: a.Error, Said: make([]string, len(a.Decisions))}
	any := a.Error != nil
	for i := range a.Decisions {
		p.Said[i] = a.Decisions[i].Reason
		any = any || p.Said[i] != ""
	}
	if a.Edited != nil {
		p.Edited = a.Edited.Reason
	}
	if !any && p.Edited == "" {
		return nil
	}
	return p
}

// put copies p into the record.
func (a *Approval) put(p *private) {
	a.Error = p.Error
	if a.Edited != nil {
		a.Edited.Reason = p.Edited
	}
	for i := range min(len(a.Decisions), len(p.Said)) {
		a.Decisions[i].Reason = p.Said[i]
	}
}

// decode decodes the output of encode. If the tenant was deleted, the private parts are missing.
func (r *Records) decode(ctx context.Context, head []byte) (*Approval, error) {
	a, err := decode(head)
	if err != nil || len(a.Private) == 0 {
		return a, err
	}
	text, err := r.ring.Open(ctx, a.Private, kindPrivate, string(a.ID))
	a.Private = nil
	switch {
	case datakey.Gone(err):
		return a, nil
	case err != nil:
		return nil, unavailable(err, a.CallID)
	}
	p := new(private)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("decoding the approval: %w", err)
	}
	a.put(p)
	return a, nil
}

// sealBytes seals data of an approval, or part n of it, for its tenant.
func (r *Records) sealBytes(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, kind string, n int, b []byte) ([]byte, error) {
	if kind == kindDefinition { // a definition belongs to the server, not to the tenant
		return b, nil
	}
	return r.ring.Seal(ctx, tenant, b, "approval "+kind, string(id), strconv.Itoa(n))
}

// openBytes decrypts data of sealBytes. The error is of KindNotFound if the tenant was deleted.
func (r *Records) openBytes(ctx context.Context, a *Approval, kind string, n int, b []byte) ([]byte, error) {
	plain, err := r.ring.Open(ctx, b, "approval "+kind, string(a.ID), strconv.Itoa(n))
	switch {
	case errors.Is(err, datakey.ErrDestroyed):
		return nil, schema.Errorf(schema.KindNotFound, "The %s of approval %s has been deleted.", kind, a.ID).WithCall(a.CallID)
	case errors.Is(err, datakey.ErrUnreadable):
		return nil, damaged(a, kind)
	case err != nil:
		return nil, unavailable(err, a.CallID)
	}
	return plain, nil
}
