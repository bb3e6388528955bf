package journal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// maxObjectPart limits one message of an object, maxObject an entire object, in bytes.
const (
	maxObjectPart = 4 << 20
	maxObject     = 64 << 20
)

// errObjectTooLarge means that the data exceeds maxObject.
var errObjectTooLarge = errors.New("there are too many bytes to store")

// errDamaged means that the data does not have the recorded digest.
var errDamaged = errors.New("the stored bytes do not have the digest that was recorded")

// objects stores data that is too large for a record, by the id of its journal and a name, which is a
// plain token and used once. It is split into parts. Each part starts with the number of parts, as
// uint32 in big endian, and has a separate subject, so that it can be read like a record. An object
// store would need a consumer per read.
type objects struct {
	s    *bus.Stream
	ring *datakey.Ring
}

// put seals and stores data of the tenant, and returns a reference to it.
func (s objects) put(ctx context.Context, tenant schema.TenantID, id schema.BatchID, name string, data []byte) (Object, error) {
	if len(data) > maxObject {
		return Object{}, fmt.Errorf("%w: %d of at most %d", errObjectTooLarge, len(data), maxObject)
	}
	if err := s.s.Writable(); err != nil {
		return Object{}, err
	}
	sum, size := sha256.Sum256(data), int64(len(data))
	data, err := s.ring.Seal(ctx, tenant, data, kindObject, string(id), name)
	if err != nil {
		return Object{}, err
	}
	most := min(maxObjectPart, maxMessage(s.s))
	n := max((len(data)+most-1)/most, 1)
	// The first part is written last: if it exists, all do.
	for i := n - 1; i >= 0; i-- {
		chunk := data[i*most : min((i+1)*most, len(data))]
		part := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(chunk)), uint32(n))
		if _, err := s.s.Put(ctx, bus.Message{Subject: objectSubject(id, name, i), Data: append(part, chunk...)}); err != nil {
			return Object{}, fmt.Errorf("storing part %d of %d: %w", i+1, n, err)
		}
	}
	return Object{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: size}, nil
}

// get reads a stored object. [bus.ErrNotFound] means that it is no longer stored.
func (s objects) get(ctx context.Context, id schema.BatchID, o Object) ([]byte, error) {
	if o.Size < 0 || o.Size > maxObject {
		return nil, errDamaged
	}
	whole := make([]byte, 0, o.Size)
	for i, n := 0, 1; i < n; i++ {
		m, err := s.s.Last(ctx, objectSubject(id, o.Name, i), bus.Either)
		if err != nil {
			return nil, err
		}
		if len(m.Data) < 4 || int64(len(whole)+len(m.Data)-4) > o.Size+int64(datakey.Overhead) {
			return nil, errDamaged
		}
		if i == 0 {
			n = int(binary.BigEndian.Uint32(m.Data))
		}
		whole = append(whole, m.Data[4:]...)
	}
	whole, err := s.ring.Open(ctx, whole, kindObject, string(id), o.Name)
	if datakey.Gone(err) {
		return nil, bus.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(whole); hex.EncodeToString(sum[:]) != o.SHA256 {
		return nil, errDamaged
	}
	return whole, nil
}

// purge deletes all objects of a journal.
func (s objects) purge(ctx context.Context, id schema.BatchID) error {
	return s.s.Purge(ctx, bus.SubjectObject+bus.Token(id)+".*.*", 0)
}

func objectSubject(id schema.BatchID, name string, n int) string {
	return bus.SubjectObject + bus.Token(id) + "." + bus.Token(name) + "." + strconv.Itoa(n)
}
