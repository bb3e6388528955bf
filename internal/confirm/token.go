package confirm

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Store keeps tokens. All methods are safe for concurrent use. Errors are those
// of this package.
type Store interface {
	// Mint makes a token that spends the approval until ttl has passed. binding
	// is kept beside it and given back with the grant.
	Mint(ctx context.Context, approvalID, binding string, ttl time.Duration) (token string, err error)
	// Find says what a token is for, without spending it.
	Find(ctx context.Context, token string) (Grant, error)
	// Take spends a token for an attempt, a text that the caller makes up for
	// one request and repeats when it asks again. The same attempt gets the same
	// grant again; every other one gets a [SpentError].
	Take(ctx context.Context, token, attempt string) (Grant, error)
	// Close releases what the store holds, the connection of others excepted.
	Close()
}

// Grant is what a token is worth.
type Grant struct {
	ApprovalID string
	Binding    string
}

var (
	// ErrUnknown means that no such token was minted, or that it is forgotten.
	ErrUnknown = errors.New("this token is unknown")
	// ErrDown means that the store does not answer; whether the token was spent is
	// unknown until the same attempt asks again.
	ErrDown = errors.New("the store of confirmation tokens does not answer")
)

// SpentError says that another attempt spent the token.
type SpentError struct{ ApprovalID string }

func (e *SpentError) Error() string {
	return "this token was spent already, on approval " + e.ApprovalID
}

// ExpiredError says that the token's time is over.
type ExpiredError struct{ ApprovalID string }

func (e *ExpiredError) Error() string { return "this token has expired, of approval " + e.ApprovalID }

// keep is how long a token that was spent or has expired is remembered.
const keep = 24 * time.Hour

const (
	prefix = "cyt_"
	secret = 32 // bytes
)

// newToken returns a token and the hash under which it is stored.
func newToken() (token, hash string) {
	var b [secret]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("confirm: no randomness: " + err.Error()) // crypto/rand never fails on what we run on
	}
	token = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	return token, Hash(token)
}

// Hash returns the hex SHA-256 of a token: what may be stored and logged of it.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// WellFormed says that a text has the form of a token.
func WellFormed(token string) bool {
	rest, ok := strings.CutPrefix(token, prefix)
	if !ok || len(rest) != base64.RawURLEncoding.EncodedLen(secret) {
		return false
	}
	_, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	return err == nil && !strings.ContainsAny(rest, "\r\n")
}

func mintable(approvalID string, ttl time.Duration) error {
	if approvalID == "" || ttl <= 0 {
		return fmt.Errorf("a token needs an approval (%q) and time to be spent in (%s)", approvalID, ttl)
	}
	return nil
}

// takeable says why a token cannot be taken before any store is asked.
func takeable(token, attempt string) error {
	if !WellFormed(token) {
		return ErrUnknown
	}
	if attempt == "" {
		return errors.New("a token is taken for an attempt, and none was named")
	}
	return nil
}

func down(doing string, err error) error { return fmt.Errorf("%w: %s: %w", ErrDown, doing, err) }
