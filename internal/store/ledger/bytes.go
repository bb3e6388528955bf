package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Arguments, definitions and results are stored in one of four places. The first write of a record (the
// opening) has, after its head, uint32 length of the definition | definition | arguments. The last
// change has the result. Data that does not fit there, and edited arguments, are stored in parts named
// by kind and digest. Each part begins with uint32 number of parts. All numbers are big endian.
// Arguments over smallArguments, edited or not, are stored in parts in the stream of held calls, and
// purged when the call has ended, so that lists of held calls and starting processes do not read them.
const (
	kindDefinition = "definition"
	kindArguments  = "arguments"
	kindEdited     = "edited"
	kindResult     = "result"

	maxPart = 4 << 20
	// smallArguments is the maximum size of arguments that are stored, and kept, with the record.
	smallArguments = 4 << 10
	// inlineResult is the maximum size of a result that is stored with the record. A larger one
	// would slow down every read of the record.
	inlineResult = 256 << 10
	// MaxBytes is the maximum size of arguments or a result.
	MaxBytes = 64 << 20
)

// opening returns the body of the first write. If the data does not fit, it is stored in parts and the
// body is empty.
func (l *Ledger) opening(ctx context.Context, a *Approval, args []byte, head int) ([]byte, error) {
	tenant := a.Binding.Tenant
	if a.Apart {
		if err := l.store.putParts(ctx, tenant, inHeld, a.ID, kindArguments, a.Binding.ArgumentsDigest, args); err != nil {
			return nil, err
		}
		args = nil
	}
	sealed, err := l.store.sealBytes(ctx, tenant, a.ID, kindArguments, 0, args)
	if err != nil {
		return nil, err
	}
	size := 4 + len(a.Definition) + len(sealed)
	if bus.RecordSize(head)+size > l.store.maxBody() {
		if len(a.Definition) > 0 {
			if err := l.store.putParts(ctx, tenant, inLedger, a.ID, kindDefinition, a.Binding.ToolDefinitionDigest, a.Definition); err != nil {
				return nil, err
			}
		}
		if a.Apart {
			return nil, nil
		}
		return nil, l.store.putParts(ctx, tenant, inLedger, a.ID, kindArguments, a.Binding.ArgumentsDigest, args)
	}
	body := make([]byte, 0, size)
	body = binary.BigEndian.AppendUint32(body, uint32(len(a.Definition)))
	body = append(body, a.Definition...)
	return append(body, sealed...), nil
}

// Arguments returns the exact bytes that would run now: the edited arguments, if there are any, else the
// requested ones.
func (l *Ledger) Arguments(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID) ([]byte, error) {
	a, _, err := l.Get(ctx, schema.OnlyTenant(tenant), id)
	if err != nil {
		return nil, err
	}
	return l.ArgumentsOf(ctx, a)
}

// ArgumentsOf is [Content.Arguments] for the given version of an approval.
func (l *Ledger) ArgumentsOf(ctx context.Context, a *Approval) ([]byte, error) {
	return l.ContentOf(a).Arguments(ctx)
}

// Asked returns the exact bytes of the requested arguments, before any edit.
func (l *Ledger) Asked(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID) ([]byte, error) {
	a, _, err := l.Get(ctx, schema.OnlyTenant(tenant), id)
	if err != nil {
		return nil, err
	}
	return l.ContentOf(a).stored(ctx, kindArguments)
}

// Definition returns the tool definition as the server sent it when the call was held, or nil if none
// was stored.
func (l *Ledger) Definition(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID) ([]byte, error) {
	a, _, err := l.Get(ctx, schema.OnlyTenant(tenant), id)
	if err != nil {
		return nil, err
	}
	return l.ContentOf(a).Definition(ctx)
}

// Content reads the data of an approval. Data that was stored together is read once. It is not safe for
// concurrent use.
type Content struct {
	l      *Ledger
	a      *Approval
	opened *Stored // the opening of the record; nil until it is read
}

// ContentOf returns a reader for the data of the given version of an approval.
func (l *Ledger) ContentOf(a *Approval) *Content { return &Content{l: l, a: a} }

// Arguments returns the exact bytes that would run. It needs no read if this process created the
// approval.
func (c *Content) Arguments(ctx context.Context) ([]byte, error) {
	if e := c.a.Edited; e != nil {
		return c.l.store.parts(ctx, placeOf(int(e.Size)), c.a, kindEdited, e.ArgumentsDigest)
	}
	if args := c.l.view.arguments(c.a.ID); args != nil {
		return matching(c.a, kindArguments, args, c.a.Binding.ArgumentsDigest)
	}
	return c.stored(ctx, kindArguments)
}

// Definition returns the tool definition as the server sent it when the call was held, or nil if none
// was stored.
func (c *Content) Definition(ctx context.Context) ([]byte, error) {
	b, err := c.stored(ctx, kindDefinition)
	if schema.KindOf(err) == schema.KindNotFound {
		return nil, nil // the arguments are in parts, and no definition was stored with them
	}
	return b, err
}

// stored reads data that was stored at the creation of the approval.
func (c *Content) stored(ctx context.Context, kind string) ([]byte, error) {
	a := c.a
	if a.Apart && kind == kindArguments {
		return c.l.store.parts(ctx, inHeld, a, kind, a.Binding.ArgumentsDigest)
	}
	if c.opened == nil {
		r, err := c.l.store.opening(ctx, a.ID)
		if err != nil {
			return nil, readError(err, a.ID)
		}
		c.opened = &r
	}
	want := a.Binding.ArgumentsDigest
	if kind == kindDefinition {
		want = a.Binding.ToolDefinitionDigest
	}
	if len(c.opened.Body) == 0 {
		return c.l.store.parts(ctx, inLedger, a, kind, want)
	}
	definition, args, err := split(c.opened.Body)
	if err != nil {
		return nil, damaged(a, kind)
	}
	if kind == kindArguments {
		if args, err = c.l.store.openBytes(ctx, a, kind, 0, args); err != nil {
			return nil, err
		}
		return matching(a, kind, args, want)
	}
	if len(definition) == 0 {
		return nil, nil
	}
	return matching(a, kind, definition, want)
}

func split(body []byte) (definition, args []byte, err error) {
	if len(body) < 4 {
		return nil, nil, errors.New("the body has no length")
	}
	n := binary.BigEndian.Uint32(body)
	if uint64(n) > uint64(len(body)-4) {
		return nil, nil, errors.New("the definition is longer than the body")
	}
	return body[4 : 4+n : 4+n], body[4+n:], nil
}

// PutEdited stores edited arguments for an approval of the tenant and returns their digest. They take
// effect with the change that sets [Approval.Edited] to it.
func (l *Ledger) PutEdited(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, args []byte) (string, error) {
	return l.put(ctx, tenant, placeOf(len(args)), id, kindEdited, args)
}

// placeOf returns the place for arguments of that size.
func placeOf(size int) place {
	if size > smallArguments {
		return inHeld
	}
	return inLedger
}

// put stores data of an approval of the tenant, which must exist.
func (l *Ledger) put(ctx context.Context, tenant schema.TenantID, at place, id schema.ApprovalID, kind string, b []byte) (string, error) {
	if _, _, _, err := l.known(ctx, schema.OnlyTenant(tenant), id); err != nil {
		return "", err
	}
	if len(b) > MaxBytes {
		return "", schema.Errorf(schema.KindTooLarge, "The %s of approval %s has %d bytes and exceeds the limit of %d bytes.", kind, id, len(b), MaxBytes)
	}
	d := schema.Digest(b)
	if err := l.store.putParts(ctx, tenant, at, id, kind, d, b); err != nil {
		return "", unavailable(err, "")
	}
	return d, nil
}

// Result returns the exact bytes of the result of an approval. seen is the caller's version of the
// approval. The error is of KindNotFound if it has no ResultDigest.
func (l *Ledger) Result(ctx context.Context, seen *Approval) ([]byte, error) {
	id := seen.ID
	if seen.ResultDigest == "" {
		return nil, schema.Errorf(schema.KindNotFound, "Approval %s has no result: it is %s.", id, seen.State).WithCall(seen.CallID)
	}
	a, r, err := l.read(ctx, schema.OnlyTenant(seen.Binding.Tenant), id)
	if err != nil {
		return nil, err
	}
	if a.ResultDigest == "" { // read from a lagging replica
		if r, err = l.store.get(ctx, id, bus.Leader); err != nil {
			return nil, readError(err, id)
		}
		if a, err = l.store.decode(ctx, r.Head); err != nil {
			return nil, err
		}
	}
	if a.ResultDigest == "" { // a newly elected leader may lag, too
		e := schema.Errorf(schema.KindUnavailable, "The result of approval %s cannot be read yet: a server of NATS that has just become the leader does not have it. Read it again.", id)
		e.Retryable, e.RetryAfter = true, time.Second
		return nil, e.WithCall(seen.CallID)
	}
	if r.Revision != 0 && len(r.Body) > 0 {
		body, err := l.store.openBytes(ctx, a, kindResult, 0, r.Body)
		if err != nil {
			return nil, err
		}
		return matching(a, kindResult, body, a.ResultDigest)
	}
	return l.store.parts(ctx, inLedger, a, kindResult, a.ResultDigest)
}

// putParts stores data of the tenant in parts. The first part is written last: if it exists, all do. Each
// part is sealed separately, so concurrent writers of the same data store equivalent parts.
func (r *Records) putParts(ctx context.Context, tenant schema.TenantID, at place, id schema.ApprovalID, kind, sum string, b []byte) error {
	size := min(r.maxBody(), maxPart) - datakey.Overhead
	n := max((len(b)+size-1)/size, 1)
	for i := n - 1; i >= 0; i-- {
		chunk := b[i*size : min((i+1)*size, len(b))]
		chunk, err := r.sealBytes(ctx, tenant, id, kind, i, chunk)
		if err != nil {
			return err
		}
		part := make([]byte, 4, 4+len(chunk))
		binary.BigEndian.PutUint32(part, uint32(n))
		if err := r.putPart(ctx, at, id, kind, partName(sum), i, append(part, chunk...)); err != nil {
			return fmt.Errorf("storing part %d of the %s: %w", i, kind, err)
		}
	}
	return nil
}

func (r *Records) parts(ctx context.Context, at place, a *Approval, kind, want string) ([]byte, error) {
	var whole bytes.Buffer
	for i, n := 0, 1; i < n; i++ {
		part, err := r.part(ctx, at, a.ID, kind, partName(want), i)
		if errors.Is(err, bus.ErrNotFound) && at == inHeld {
			return nil, schema.Errorf(schema.KindNotFound, "The arguments of approval %s have been deleted: arguments over %d bytes are deleted when their call has ended. Their digest is %s.", a.ID, smallArguments, want).WithCall(a.CallID)
		}
		if errors.Is(err, bus.ErrNotFound) {
			return nil, schema.Errorf(schema.KindNotFound, "The %s of approval %s has been deleted.", kind, a.ID).WithCall(a.CallID)
		}
		if err != nil {
			return nil, unavailable(err, a.CallID)
		}
		if len(part) < 4 || whole.Len()+len(part) > MaxBytes+maxPart {
			return nil, damaged(a, kind)
		}
		count := int(binary.BigEndian.Uint32(part))
		if i == 0 {
			n = count
			whole.Grow(min(n*(len(part)-4), MaxBytes))
		}
		if count != n {
			return nil, damaged(a, kind)
		}
		chunk, err := r.openBytes(ctx, a, kind, i, part[4:])
		if err != nil {
			return nil, err
		}
		whole.Write(chunk)
	}
	return matching(a, kind, whole.Bytes(), want)
}

// partName returns a token of 32 characters of a digest.
func partName(sum string) string {
	hex := strings.TrimPrefix(sum, "sha256:")
	return hex[:min(32, len(hex))]
}

// matching returns the data only if it has the digest of the binding.
func matching(a *Approval, kind string, b []byte, want string) ([]byte, error) {
	if schema.Digest(b) != want {
		return nil, damaged(a, kind)
	}
	return b, nil
}

func damaged(a *Approval, kind string) error {
	return schema.Errorf(schema.KindInternal, "The stored %s of approval %s do not match the recorded digest and are not used.", kind, a.ID).WithCall(a.CallID)
}
