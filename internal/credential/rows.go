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
	plain, err := b.open(ctx, s, person, key, sealed)
	if err != nil {
		return nil, revision, err
	}
	r := &row{}
	if err := json.Unmarshal(plain, r); err != nil {
		return nil, revision, errUnreadable
	}
	return r, revision, nil
}

// open decrypts a row.
func (b *Book) open(ctx context.Context, s *Server, person, key string, sealed []byte) (plain []byte, err error) {
	if b.data != nil {
		var gone interface{ Gone() bool }
		sealed, err = b.data.Open(ctx, sealed, dataPlace(key)...)
		switch {
		case errors.As(err, &gone):
			return nil, errUnreadable
		case err != nil:
			return nil, err
		}
	}
	plain, err = b.keys.open(sealed, b.place(s, person))
	b.logMissingKey(err)
	return plain, err
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
