package bus

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// maxObjectPart is the most that one message of an object carries; maxObject what
// all of them may.
const (
	maxObjectPart = 4 << 20
	maxObject     = 64 << 20
)

// ErrObjectTooLarge means that there are more bytes than can be kept.
var ErrObjectTooLarge = errors.New("there are too many bytes to keep")

// ErrDamaged means that the bytes are not those that were stored.
var ErrDamaged = errors.New("the stored bytes do not have the digest that was recorded")

// PutObject stores bytes of a journal under a name, a plain token that is used once,
// and returns what points at them. They lie in parts, each of which begins with
// uint32 number of parts in big endian; a subject for each part keeps them as
// readable as a record, where an object store would need a consumer for each read.
func (j *Journals) PutObject(ctx context.Context, id, name string, data []byte) (JournalObject, error) {
	if len(data) > maxObject {
		return JournalObject{}, fmt.Errorf("%w: %d of at most %d", ErrObjectTooLarge, len(data), maxObject)
	}
	if err := j.c.writable(streamObjects); err != nil {
		return JournalObject{}, err
	}
	sum := sha256.Sum256(data)
	most := min(maxObjectPart, j.MaxMessage())
	n := max((len(data)+most-1)/most, 1)
	// The first comes last: where it is, all are.
	for i := n - 1; i >= 0; i-- {
		chunk := data[i*most : min((i+1)*most, len(data))]
		part := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(chunk)), uint32(n))
		if _, err := j.c.store(ctx, &nats.Msg{Subject: objectSubject(id, name, i), Data: append(part, chunk...)}); err != nil {
			return JournalObject{}, fmt.Errorf("storing part %d of %d: %w", i+1, n, err)
		}
	}
	return JournalObject{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}, nil
}

// Object reads what [Journals.PutObject] stored; [ErrNotFound] means that it is not
// kept any more.
func (j *Journals) Object(ctx context.Context, id string, o JournalObject) ([]byte, error) {
	if o.Size < 0 || o.Size > maxObject {
		return nil, ErrDamaged
	}
	whole := make([]byte, 0, o.Size)
	for i, n := 0, 1; i < n; i++ {
		m, err := direct(ctx, j.objects, objectSubject(id, o.Name, i))
		if errors.Is(err, ErrNotFound) {
			m, err = j.c.leader(ctx, streamObjects, objectSubject(id, o.Name, i))
		}
		if err != nil {
			return nil, err
		}
		if len(m.data) < 4 || int64(len(whole)+len(m.data)-4) > o.Size {
			return nil, ErrDamaged
		}
		if i == 0 {
			n = int(binary.BigEndian.Uint32(m.data))
		}
		whole = append(whole, m.data[4:]...)
	}
	if sum := sha256.Sum256(whole); hex.EncodeToString(sum[:]) != o.SHA256 {
		return nil, ErrDamaged
	}
	return whole, nil
}

// PurgeObjects forgets all objects of a journal.
func (j *Journals) PurgeObjects(ctx context.Context, id string) error {
	if err := j.objects.Purge(ctx, jetstream.WithPurgeSubject(subjectObject+token(id)+".*.*")); err != nil {
		return fmt.Errorf("forgetting large bytes: %w", err)
	}
	return nil
}

func objectSubject(id, name string, n int) string {
	return subjectObject + token(id) + "." + token(name) + "." + strconv.Itoa(n)
}
