package authserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/store/oauthtable"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
)

const (
	// codeLife is the lifetime of an authorization code.
	codeLife = time.Minute
	// grace is the time for which the previous refresh token still returns the current one. A
	// client that lost a response, or that sends two requests concurrently, is not an attacker.
	grace = 10 * time.Second

	grantID     = 16
	secretBytes = 32
	codePrefix  = "cyc_"
	freshPrefix = "cyr_"
)

// grant is the access that a person gave a client. It is stored as an encrypted row of the table.
type grant struct {
	Client string `json:"client"`
	// Name is the client's own name. Keyed reports whether it authenticates with a key, according
	// to its metadata document at the time of consent.
	Name     string   `json:"name,omitempty"`
	Keyed    bool     `json:"keyed,omitempty"`
	Redirect string   `json:"redirect"`
	Person   Person   `json:"person"`
	Resource string   `json:"resource"`
	Scopes   []string `json:"scopes"`
	// Given is the time of consent, Until the expiry.
	Given time.Time `json:"given,omitzero"`
	Until time.Time `json:"until"`
	// Code is the digest of the code, which is valid until CodeUntil. Used reports whether it was
	// redeemed.
	Code      []byte    `json:"code"`
	Challenge string    `json:"challenge"`
	CodeUntil time.Time `json:"code_until"`
	Used      bool      `json:"used,omitempty"`
	// Serial counts the refresh tokens. Refresh is the digest of the last one, issued at Renewed.
	Serial  uint64    `json:"serial,omitempty"`
	Refresh []byte    `json:"refresh,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`

	former bool // whether the row is not encrypted with the newest key
}

// grants is the table of grants.
type grants struct {
	rows *bus.Bucket
	keys *credential.Keys
	data *datakey.Ring // nil if there are none
}

func (g *grants) place(id []byte) []string {
	return []string{"authorization server", "grant", string(id)}
}

// create stores a grant under a new ID, and returns the code.
func (g *grants) create(ctx context.Context, one *grant) (id []byte, code string, err error) {
	raw := make([]byte, grantID+secretBytes)
	_, _ = rand.Read(raw) // it never fails
	one.Code = digest(raw)
	sealed, err := g.seal(ctx, raw[:grantID], one)
	if err != nil {
		return nil, "", err
	}
	_, err = g.rows.Create(ctx, hex.EncodeToString(raw[:grantID]), sealed)
	return raw[:grantID], codePrefix + base64.RawURLEncoding.EncodeToString(raw), err
}

// seal encrypts a grant twice: with Keys, and with the data key of the person's tenant. Without the
// data key, no copy of the grant can be read.
func (g *grants) seal(ctx context.Context, id []byte, one *grant) ([]byte, error) {
	plain, err := json.Marshal(one)
	if err != nil {
		return nil, err
	}
	sealed, err := g.keys.Seal(plain, g.place(id)...)
	if err != nil {
		return nil, err
	}
	return g.data.Seal(ctx, one.Person.Tenant, sealed, g.place(id)...)
}

// get reads a grant. bus.ErrNotFound means that it has ended or never existed.
func (g *grants) get(ctx context.Context, id []byte) (*grant, uint64, error) {
	sealed, revision, err := g.rows.Fresh(ctx, hex.EncodeToString(id))
	if err != nil {
		return nil, 0, err
	}
	one, err := g.open(ctx, id, sealed)
	return one, revision, err
}

// errErased means that a grant cannot be read because its tenant was erased. Callers treat the
// grant as not found.
var errErased = fmt.Errorf("%w: its tenant was erased", bus.ErrNotFound)

// open decrypts a grant.
func (g *grants) open(ctx context.Context, id, sealed []byte) (*grant, error) {
	sealed, err := g.data.Open(ctx, sealed, g.place(id)...)
	switch {
	case errors.Is(err, datakey.ErrDestroyed):
		return nil, errErased
	case datakey.Gone(err):
		return nil, bus.ErrNotFound
	case err != nil:
		return nil, err
	}
	plain, err := g.keys.Open(sealed, g.place(id)...)
	if err != nil {
		return nil, bus.ErrNotFound // its key is gone, so it is useless
	}
	one := &grant{former: !g.keys.Newest(sealed)}
	return one, json.Unmarshal(plain, one)
}

// rewrap encrypts a grant with the newest key, so that operators can remove the former one. A grant
// whose code may be redeemed stays as it is: a redemption that finds another revision takes that for a
// second use of the code.
func (g *grants) rewrap(ctx context.Context, id []byte, now time.Time) error {
	one, revision, err := g.get(ctx, id)
	if err == nil && one.former && (one.Used || now.After(one.CodeUntil.Add(apart))) {
		err = g.replace(ctx, id, one, revision)
	}
	if errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrConflict) {
		return nil // it ended, or was used in the meantime
	}
	return err
}

// replace overwrites the grant that was read. bus.ErrConflict means that another process changed it
// in the meantime.
func (g *grants) replace(ctx context.Context, id []byte, one *grant, revision uint64) error {
	sealed, err := g.seal(ctx, id, one)
	if err != nil {
		return err
	}
	_, err = g.rows.Replace(ctx, hex.EncodeToString(id), sealed, revision)
	return err
}

// CountKeys counts the stored grants, and the row of signing keys, by the [credential.KeyName] of their
// keys. data opens the grants of tenants, and may be nil. Grants of erased tenants are not counted.
func CountKeys(ctx context.Context, c *bus.Conn, data *datakey.Ring) (map[string]int, error) {
	keys, rows, err := oauthtable.Rows(ctx, c)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, sealed := range keys {
		counts[credential.KeyName(sealed)]++
	}
	for name, sealed := range rows {
		id, err := hex.DecodeString(name)
		if err != nil {
			continue
		}
		inner, err := data.Open(ctx, sealed, (*grants)(nil).place(id)...)
		switch {
		case datakey.Gone(err):
		case err != nil:
			return nil, err
		default:
			counts[credential.KeyName(inner)]++
		}
	}
	return counts, nil
}

// end removes a grant, even if it changed in the meantime.
func (g *grants) end(ctx context.Context, id []byte) error {
	return g.rows.Delete(ctx, hex.EncodeToString(id))
}

func digest(raw []byte) []byte {
	sum := sha256.Sum256(raw)
	return sum[:]
}

// splitCode parses a code into the ID of its grant and the raw bytes.
func splitCode(code string) (id, raw []byte, ok bool) {
	raw, ok = unprefixed(code, codePrefix, grantID+secretBytes)
	if !ok {
		return nil, nil, false
	}
	return raw[:grantID], raw, true
}

// A refresh token consists of the ID of its grant, its serial number and a MAC of both. All
// processes therefore compute the same next token, and an old token can be distinguished from a
// forged one.
const (
	serialBytes  = 8
	refreshBytes = grantID + serialBytes + sha256.Size
)

func makeRefresh(secret, id []byte, serial uint64) []byte {
	raw := binary.BigEndian.AppendUint64(append([]byte{}, id...), serial)
	mac := hmac.New(sha256.New, secret)
	mac.Write(raw)
	return mac.Sum(raw)
}

func splitRefresh(token string) (id []byte, serial uint64, raw []byte, ok bool) {
	raw, ok = unprefixed(token, freshPrefix, refreshBytes)
	if !ok {
		return nil, 0, nil, false
	}
	return raw[:grantID], binary.BigEndian.Uint64(raw[grantID:]), raw, true
}

func unprefixed(text, prefix string, size int) ([]byte, bool) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	return raw, err == nil && len(raw) == size
}

func equalConstantTime(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

// errReused means that a code or a refresh token was used before.
var errReused = errors.New("it was used before")
