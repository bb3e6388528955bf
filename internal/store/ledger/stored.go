package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Streams returns the specs of the ledger streams for these options.
//
// The stream of held calls contains the large arguments of waiting calls. It is separate, because they
// are deleted when their call has ended, while the ledger is never purged.
func (o Options) Streams() []bus.StreamSpec {
	kept := bus.StreamSpec{MaxAge: keepFor, MaxBytes: o.MaxBytes, DenyDelete: true}
	records, held := kept, kept
	records.Name, records.What = bus.StreamLedger, "approvals and their data"
	records.Subjects, records.Probe = []string{bus.SubjectApproval + "*.*", bus.SubjectPart + "*.*.*.*"}, inLedger.subject(bus.ProbeToken, "probe", "probe", 0)
	held.Name, held.What = bus.StreamHeld, "large arguments of held calls"
	held.Subjects, held.Probe = []string{bus.SubjectHeld + "*.*.*.*"}, inHeld.subject(bus.ProbeToken, "probe", "probe", 0)
	return []bus.StreamSpec{records, held}
}

// Tables returns the specs of the ledger tables.
func Tables() []bus.TableSpec { return []bus.TableSpec{permissionsTable} }

// History is for people only: the table needs just the last write.
var permissionsTable = bus.TableSpec{Bucket: bus.BucketPermissions, What: "standing permissions", History: 5}

// Records reads and writes stored approval records, as bytes by id. A record is created once, with data
// stored with it, and then replaced by compare-and-set. It is safe for concurrent use.
type Records struct {
	records, held *bus.Stream
	ring          *datakey.Ring
}

// Stored is a record in stored form.
type Stored struct {
	// ID is empty if the id of the record is not a plain token.
	ID schema.ApprovalID
	// Head is the record. Body is the data that was stored with this write of it.
	Head, Body []byte
	// Revision must be passed to the next replace. It is 0 for a record that was created and
	// never replaced.
	Revision uint64
	// Sequence orders the writes of all records.
	Sequence uint64
}

// OpenRecords opens only the stored records, for inspection; [Open] opens the ledger.
func OpenRecords(ctx context.Context, conn *bus.Conn, o Options) (*Records, error) {
	specs := o.Streams()
	records, err := bus.OpenStream(ctx, conn, specs[0])
	if err != nil {
		return nil, err
	}
	held, err := bus.OpenStream(ctx, conn, specs[1])
	if err != nil {
		return nil, err
	}
	return &Records{records, held, o.DataKeys}, nil
}

func openingOf(id schema.ApprovalID) string {
	return bus.SubjectApproval + bus.Token(id) + bus.SuffixOpen
}
func stateOf(id schema.ApprovalID) string {
	return bus.SubjectApproval + bus.Token(id) + bus.SuffixState
}

// maxBody returns the maximum size of head, as counted by [bus.RecordSize], and body of one record.
func (r *Records) maxBody() int { return r.records.MaxMessage() - 2<<10 }

// create stores the first version of a record: the first writer succeeds, all others get
// [bus.ErrConflict]. It returns the sequence of the write.
func (r *Records) create(ctx context.Context, id schema.ApprovalID, head, body []byte) (uint64, error) {
	if err := r.records.Writable(); err != nil {
		return 0, err
	}
	return r.records.PutAfter(ctx, bus.Message{Subject: openingOf(id), Record: head, Data: body}, 0)
}

// replace stores a record and its data if its current revision is the given one. It returns the new
// revision, which is also the sequence of the write. The data of an earlier replacement is lost; the data
// of the opening remains.
func (r *Records) replace(ctx context.Context, id schema.ApprovalID, head, body []byte, revision uint64) (uint64, error) {
	if err := r.records.Writable(); err != nil {
		return 0, err
	}
	return r.records.PutAfter(ctx, bus.Message{Subject: stateOf(id), Record: head, Data: body}, revision)
}

// Get reads the current record of these tenants. The error is [bus.ErrNotFound] if it does not exist, or
// belongs to another tenant.
func (r *Records) Get(ctx context.Context, of schema.Tenants, id schema.ApprovalID, from bus.Source) (Stored, error) {
	s, err := r.get(ctx, id, from)
	if err != nil {
		return s, err
	}
	a, err := decode(s.Head)
	if err == nil && !of.Include(a.Binding.Tenant) {
		err = bus.ErrNotFound
	}
	if err != nil {
		return Stored{}, err
	}
	return s, nil
}

// get reads a record of any tenant; the caller must check its tenant. A replica may lag; if it does not
// have the record, the leader is asked.
func (r *Records) get(ctx context.Context, id schema.ApprovalID, from bus.Source) (Stored, error) {
	if from == bus.Either {
		s, err := r.get(ctx, id, bus.Replica)
		if errors.Is(err, bus.ErrNotFound) {
			return r.get(ctx, id, bus.Leader)
		}
		return s, err
	}
	m, err := r.records.Last(ctx, stateOf(id), from)
	if errors.Is(err, bus.ErrNotFound) {
		m, err = r.records.Last(ctx, openingOf(id), from)
	}
	return stored(m, id, err)
}

// opening reads the first version of a record, with its data.
func (r *Records) opening(ctx context.Context, id schema.ApprovalID) (Stored, error) {
	m, err := r.records.Last(ctx, openingOf(id), bus.Either)
	return stored(m, id, err)
}

// stored returns the record of a message, or err.
func stored(m bus.Message, id schema.ApprovalID, err error) (Stored, error) {
	switch {
	case err != nil:
		return Stored{}, err
	case len(m.Record) == 0:
		return Stored{}, fmt.Errorf("the record at sequence %d of %s cannot be read", m.Sequence, bus.StreamLedger)
	}
	s := Stored{ID: id, Head: m.Record, Body: m.Data, Sequence: m.Sequence}
	if strings.HasSuffix(m.Subject, bus.SuffixState) {
		s.Revision = m.Sequence
	}
	return s, nil
}

// watch calls f for every stored record, in the order of the last write, and then for each write, without
// its Body; see [bus.Stream.Watch]. An unreadable record has no Head.
func (r *Records) watch(ctx context.Context, f func(Stored)) (*bus.StreamWatch, error) {
	return r.records.WatchRecords(ctx, bus.SubjectApproval+"*.*", func(m bus.Message) {
		id := schema.ApprovalID(strings.TrimPrefix(m.Subject, bus.SubjectApproval))
		id = schema.ApprovalID(strings.TrimSuffix(strings.TrimSuffix(string(id), bus.SuffixState), bus.SuffixOpen))
		s, err := stored(m, id, nil)
		if err != nil || !bus.PlainToken(id) {
			s = Stored{ID: id, Sequence: m.Sequence}
		}
		f(s)
	})
}

// place is a place for parts of a record.
type place int

const (
	// inLedger is the ledger itself; parts live as long as the record.
	inLedger place = iota
	// inHeld is the stream of held calls; parts live until purgeHeld.
	inHeld
)

func (p place) subject(id schema.ApprovalID, kind, name string, n int) string {
	subject := bus.SubjectPart
	if p == inHeld {
		subject = bus.SubjectHeld
	}
	return subject + bus.Token(id) + "." + bus.Token(kind) + "." + bus.Token(name) + "." + strconv.Itoa(n)
}

func (r *Records) at(p place) *bus.Stream {
	if p == inHeld {
		return r.held
	}
	return r.records
}

// putPart stores part n of data of a record. kind and name are plain tokens. It is idempotent.
func (r *Records) putPart(ctx context.Context, at place, id schema.ApprovalID, kind, name string, n int, data []byte) error {
	s := r.at(at)
	if err := s.Writable(); err != nil {
		return err
	}
	_, err := s.Put(ctx, bus.Message{Subject: at.subject(id, kind, name, n), Data: data})
	return err
}

// part reads a part that putPart stored.
func (r *Records) part(ctx context.Context, at place, id schema.ApprovalID, kind, name string, n int) ([]byte, error) {
	m, err := r.at(at).Last(ctx, at.subject(id, kind, name, n), bus.Either)
	if err == nil && len(m.Data) == 0 {
		err = bus.ErrNotFound // emptied by retention
	}
	return m.Data, err
}

// purgeHeld deletes the parts of a record that were stored inHeld.
func (r *Records) purgeHeld(ctx context.Context, id schema.ApprovalID) error {
	return r.held.Purge(ctx, bus.SubjectHeld+bus.Token(id)+".*.*.*", 0)
}

// heldIDs returns the ids of the records with parts stored inHeld, in no particular order. It skips ids
// that are not plain tokens.
func (r *Records) heldIDs(ctx context.Context) ([]schema.ApprovalID, error) {
	subjects, err := r.held.Subjects(ctx, bus.SubjectHeld+">")
	if err != nil {
		return nil, err
	}
	seen := make(map[schema.ApprovalID]bool, len(subjects))
	var ids []schema.ApprovalID
	for _, subject := range subjects {
		id, _, _ := strings.Cut(strings.TrimPrefix(subject, bus.SubjectHeld), ".")
		if !seen[schema.ApprovalID(id)] && bus.PlainToken(id) {
			seen[schema.ApprovalID(id)] = true
			ids = append(ids, schema.ApprovalID(id))
		}
	}
	return ids, nil
}
