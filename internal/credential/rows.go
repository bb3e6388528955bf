package credential

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/pkg/bus"
)

func (b *Book) place(s *Server, person string) []byte { return place(string(s.ID), s.origin(), person) }

// keyOf returns the key of a person's row.
func keyOf(s *Server, person string) string {
	return credentialtable.Key(tenantOf(person), s.ID, person)
}

// dataPlace returns the place of a row for the data keys.
func dataPlace(key string) []string { return []string{"credential", key} }

// read returns the row of a person, or nil if there is none for this server.
func (b *Book) read(ctx context.Context, s *Server, person string) (*row, uint64, error) {
	key := keyOf(s, person)
	sealed, revision, err := b.rows.Fresh(ctx, key)
	if former := credentialtable.FormerKey(s.ID, person); errors.Is(err, bus.ErrNotFound) && former != key {
		sealed, revision, err = b.moved(ctx, person, former, key)
	}
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	inner, err := b.uncover(ctx, key, sealed)
	if err != nil {
		return nil, revision, err
	}
	plain, err := b.keys.open(inner, b.place(s, person))
	b.logMissingKey(err)
	if err != nil {
		return nil, revision, err
	}
	r := &row{former: !b.keys.Newest(inner)}
	if err := json.Unmarshal(plain, r); err != nil {
		return nil, revision, errUnreadable
	}
	return r, revision, nil
}

// uncover reverses cover.
func (b *Book) uncover(ctx context.Context, key string, sealed []byte) ([]byte, error) {
	if b.data == nil {
		return sealed, nil
	}
	var gone interface{ Gone() bool }
	inner, err := b.data.Open(ctx, sealed, dataPlace(key)...)
	if errors.As(err, &gone) {
		return nil, errUnreadable
	}
	return inner, err
}

// rewrap encrypts a row with the newest key, so that operators can remove the former one. It is done
// at a use of the row, because its ciphertext is bound to the person, whom only the caller knows. A row
// with a lease stays as it is: the holder of the lease could not store its new token otherwise.
func (b *Book) rewrap(ctx context.Context, s *Server, person string, r *row, revision uint64) {
	if !r.former || b.now().Before(r.Renewing) {
		return
	}
	sealed, err := b.seal(ctx, s, person, r)
	if err == nil {
		_, err = b.rows.Replace(ctx, keyOf(s, person), sealed, revision)
	}
	if err != nil && !errors.Is(err, bus.ErrConflict) {
		b.log.Warn("a stored credential cannot be encrypted with the newest key; that is tried again at its next use", "server", s.ID, "error", err)
	}
}

// logMissingKey logs once per missing key that stored credentials cannot be read without it. People are
// asked to connect again, and only an operator can know the cause.
func (b *Book) logMissingKey(err error) {
	var missing *missingKeyError
	if !errors.As(err, &missing) {
		return
	}
	if _, told := b.missing.LoadOrStore(missing.name, true); !told {
		b.log.Error("stored credentials cannot be read, because their key is not in credentials.key_file; put it back below the newest one, or their people must connect again", "key", missing.name)
	}
}

// moved moves the row that a version up to 0.1.0 wrote for a person of a tenant to its current key,
// and returns it. If several processes do so concurrently, one wins.
func (b *Book) moved(ctx context.Context, person, former, key string) (sealed []byte, revision uint64, err error) {
	inner, was, err := b.rows.Fresh(ctx, former)
	if err != nil {
		return nil, 0, err
	}
	if sealed, err = b.cover(ctx, person, key, inner); err != nil {
		return nil, 0, err
	}
	revision, err = b.rows.Create(ctx, key, sealed)
	if errors.Is(err, bus.ErrConflict) {
		return b.rows.Fresh(ctx, key)
	}
	if err == nil {
		err = b.rows.Remove(ctx, former, was)
	}
	return sealed, revision, err
}

// cover encrypts a row with the data key of the person's tenant.
func (b *Book) cover(ctx context.Context, person, key string, sealed []byte) ([]byte, error) {
	if b.data == nil {
		return sealed, nil
	}
	return b.data.Seal(ctx, tenantOf(person), sealed, dataPlace(key)...)
}

func (b *Book) seal(ctx context.Context, s *Server, person string, r *row) ([]byte, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return nil, errors.New("the credential cannot be stored")
	}
	sealed, err := b.keys.seal(plain, b.place(s, person))
	if err != nil {
		return nil, err
	}
	return b.cover(ctx, person, keyOf(s, person), sealed)
}

// store writes a person's credential, replacing an existing one.
func (b *Book) store(ctx context.Context, s *Server, person string, r *row) error {
	sealed, err := b.seal(ctx, s, person, r)
	if err != nil {
		return err
	}
	_, err = b.rows.Put(ctx, keyOf(s, person), sealed)
	return err
}
