package confirm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// Stream keeps tokens on JetStream, for installations without Redis. A take is a
// read and one write by compare-and-set, so it survives what JetStream survives.
type Stream struct {
	tokens *bus.Tokens
	now    func() time.Time
}

var _ Store = (*Stream)(nil)

// held is the stored form of a token.
type held struct {
	ApprovalID string    `json:"approval_id"`
	Binding    string    `json:"binding,omitempty"`
	Expires    time.Time `json:"expires"`
	// Attempt is empty until the token is spent.
	Attempt string `json:"attempt,omitempty"`
}

// takeTries is how often a take is tried against others; one of each round wins,
// and the rest then see that the token is spent.
const takeTries = 8

// OpenStream opens the store on a connection, which stays the caller's. now may
// be nil.
func OpenStream(ctx context.Context, conn *bus.Conn, now func() time.Time) (*Stream, error) {
	tokens, err := bus.OpenTokens(ctx, conn)
	if err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	return &Stream{tokens, now}, nil
}

// Mint makes a token; see [Store].
func (s *Stream) Mint(ctx context.Context, approvalID, binding string, ttl time.Duration) (string, error) {
	if err := mintable(approvalID, ttl); err != nil {
		return "", err
	}
	token, hash := newToken()
	value, err := json.Marshal(held{ApprovalID: approvalID, Binding: binding, Expires: s.now().Add(ttl).UTC()})
	if err != nil {
		return "", fmt.Errorf("encoding the token: %w", err)
	}
	if _, err := s.tokens.Put(ctx, hash, value, 0, ttl+keep); err != nil {
		return "", down("minting a token", err)
	}
	return token, nil
}

// Find says what a token is for; see [Store].
func (s *Stream) Find(ctx context.Context, token string) (Grant, error) {
	if !WellFormed(token) {
		return Grant{}, ErrUnknown
	}
	h, _, err := s.get(ctx, Hash(token))
	if err != nil {
		return Grant{}, err
	}
	return h.grant(s.now(), "")
}

// Take spends a token; see [Store].
func (s *Stream) Take(ctx context.Context, token, attempt string) (Grant, error) {
	if err := takeable(token, attempt); err != nil {
		return Grant{}, err
	}
	hash := Hash(token)
	var last error
	for range takeTries {
		h, revision, err := s.get(ctx, hash)
		if err != nil {
			return Grant{}, err
		}
		g, err := h.grant(s.now(), attempt)
		if err != nil || h.Attempt != "" {
			return g, err
		}
		h.Attempt = attempt
		value, err := json.Marshal(h)
		if err != nil {
			return Grant{}, fmt.Errorf("encoding the token: %w", err)
		}
		if _, err = s.tokens.Put(ctx, hash, value, revision, keep); err == nil {
			return g, nil
		}
		if last = err; !errors.Is(err, bus.ErrConflict) {
			break
		}
	}
	return Grant{}, down("taking a token", last)
}

func (s *Stream) get(ctx context.Context, hash string) (held, uint64, error) {
	value, revision, err := s.tokens.Get(ctx, hash)
	if errors.Is(err, bus.ErrNotFound) {
		return held{}, 0, ErrUnknown
	}
	if err != nil {
		return held{}, 0, down("reading a token", err)
	}
	var h held
	if err := json.Unmarshal(value, &h); err != nil {
		return held{}, 0, down("decoding a token", err)
	}
	return h, revision, nil
}

// grant judges a token for an attempt; an empty one only looks.
func (h *held) grant(now time.Time, attempt string) (Grant, error) {
	switch {
	case h.Attempt != "" && h.Attempt != attempt:
		return Grant{}, &SpentError{h.ApprovalID}
	case h.Attempt == "" && !now.Before(h.Expires):
		return Grant{}, &ExpiredError{h.ApprovalID}
	}
	return Grant{h.ApprovalID, h.Binding}, nil
}

// Close does nothing: the connection is the caller's.
func (s *Stream) Close() {}
