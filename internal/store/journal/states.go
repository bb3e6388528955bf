package journal

import (
	"context"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// manifests reads and writes the stored manifests of all journals, by id.
type manifests struct{ s *bus.Stream }

// put stores a manifest if its current revision is the given one; 0 means that there must be none. It
// expires after keep; 0 means never. It returns the new revision.
func (s manifests) put(ctx context.Context, id schema.BatchID, data []byte, revision uint64, keep time.Duration) (uint64, error) {
	if err := s.s.Writable(); err != nil {
		return 0, err
	}
	return s.s.PutAfter(ctx, bus.Message{Subject: manifestSubject(bus.Token(id)), Data: data, TTL: keep}, revision)
}

// get reads a manifest and its revision.
func (s manifests) get(ctx context.Context, id schema.BatchID, from bus.Source) (data []byte, revision uint64, err error) {
	m, err := s.s.Last(ctx, manifestSubject(bus.Token(id)), from)
	return m.Data, m.Sequence, err
}

// watch calls f for every stored manifest and then for each write; see [bus.Stream.Watch].
func (s manifests) watch(ctx context.Context, f func(id schema.BatchID, data []byte, revision uint64)) (*bus.StreamWatch, error) {
	return s.s.Watch(ctx, manifestSubject("*"), func(m bus.Message) { f(idIn(m.Subject, bus.SuffixManifest), m.Data, m.Sequence) })
}

// leases stores the claims on journals, by id. A lease expires if it is not renewed.
type leases struct{ s *bus.Stream }

// put stores a lease if its current revision is the given one; see [manifests.put].
func (s leases) put(ctx context.Context, id schema.BatchID, data []byte, revision uint64, keep time.Duration) (uint64, error) {
	return s.s.PutAfter(ctx, bus.Message{Subject: leaseSubject(bus.Token(id)), Data: data, TTL: keep}, revision)
}

// get reads a lease and its revision from the stream's leader.
func (s leases) get(ctx context.Context, id schema.BatchID) (data []byte, revision uint64, err error) {
	m, err := s.s.Last(ctx, leaseSubject(bus.Token(id)), bus.Leader)
	return m.Data, m.Sequence, err
}

// drop deletes a lease if its revision is still the given one.
func (s leases) drop(ctx context.Context, id schema.BatchID, revision uint64) error {
	return s.s.Purge(ctx, leaseSubject(bus.Token(id)), revision+1)
}

// secretName is the name of the lease that stores the secret. No journal has this id.
const secretName = "secret"

// keys stores the entries of idempotency keys, by hash.
type keys struct{ s *bus.Stream }

// put stores an entry that expires after keep. If one exists, it returns [bus.ErrConflict].
func (s keys) put(ctx context.Context, hash string, data []byte, keep time.Duration) error {
	if err := s.s.Writable(); err != nil {
		return err
	}
	_, err := s.s.PutAfter(ctx, bus.Message{Subject: bus.SubjectKey + bus.Token(hash), Data: data, TTL: max(keep, time.Second)}, 0)
	return err
}

// get reads an entry from the stream's leader.
func (s keys) get(ctx context.Context, hash string) ([]byte, error) {
	m, err := s.s.Last(ctx, bus.SubjectKey+bus.Token(hash), bus.Leader)
	return m.Data, err
}

// scan calls f with the hash and the entry of every key.
func (s keys) scan(ctx context.Context, f func(hash string, data []byte)) error {
	return s.s.Scan(ctx, bus.SubjectKey+"*", func(m bus.Message) { f(strings.TrimPrefix(m.Subject, bus.SubjectKey), m.Data) })
}
