// Package enrol maps Slack accounts to principals.
//
// It owns the enrollment. A person who is signed in on the approver's pages gets a code, types it
// in Slack, sees on the page which Slack account typed it, and confirms that the account is
// theirs. Both sides must act, so nobody is connected by the action of another person: a
// guessed, overheard or planted code connects nothing without the confirmation, and the
// confirmation names the account. A code works once, for ten minutes. Slack names, addresses and
// profiles prove nothing. A link ends with the API key that it was made with; the link of a
// person from a provider ends when the last sign-in is too old to prove the person's groups. A
// link is ignored while the person's tenant is not configured. Either side can end it.
//
// It does not know the permissions of a principal.
package enrol

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/slacktable"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// codeFor is the lifetime of a code.
const codeFor = 10 * time.Minute

// User is a Slack account.
type User struct {
	Team string `json:"team"`
	ID   string `json:"id"`
	// Name is the display name in Slack, for people to recognise. It proves nothing.
	Name string `json:"name,omitempty"`
}

// Link maps a Slack account to a principal.
type Link struct {
	User      User   `json:"user"`
	Principal string `json:"principal"`
	Owner     string `json:"owner,omitempty"`
	// Tenant is the tenant of the person when the account was connected.
	Tenant schema.TenantID `json:"tenant,omitempty"`
	// Groups and SignedIn are from the last sign-in at the provider.
	Groups   []string  `json:"groups,omitempty"`
	SignedIn time.Time `json:"signed_in,omitzero"`
	// Key is a digest of the hash of the API key that the person signed in with.
	Key string    `json:"key,omitempty"`
	At  time.Time `json:"at"`
}

// code is the code that a person types in Slack. Only its hash is stored.
type code struct {
	Hash      string    `json:"hash"`
	Principal string    `json:"principal"`
	Expires   time.Time `json:"expires"`
	User      *User     `json:"user,omitempty"` // the account that typed it
	Used      bool      `json:"used,omitempty"`
}

// Options configures a book.
type Options struct {
	// Conn is the connection to NATS. The caller must close it.
	Conn *bus.Conn
	// Keys holds the API keys, which may be replaced at any time.
	Keys *authn.Keys
	// SignInFor is the time for which the groups of a provider sign-in are valid in Slack.
	SignInFor time.Duration
	// Tenants holds the configured tenants. If nil, tenants are not separated.
	Tenants *tenants.Book
	// Page returns the address of the page where people connect.
	Page func() string
	// Now returns the current time. If nil, time.Now is used.
	Now func() time.Time
}

// Book is the table of links. It is safe for concurrent use, also by several processes on the same
// tables.
type Book struct {
	o     Options
	links *bus.Table[Link]
	codes *bus.Table[code]
}

func linkKey(team, user string) string { return bus.Token(team) + "." + bus.Token(user) }

// Open opens the tables; ctx bounds the opening.
func Open(ctx context.Context, o Options) (*Book, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	b := &Book{o: o}
	var err error
	if b.links, err = slacktable.OpenPeople(ctx, o.Conn, func(l *Link) string { return linkKey(l.User.Team, l.User.ID) }); err != nil {
		return nil, err
	}
	if b.codes, err = slacktable.OpenCodes(ctx, o.Conn, func(c *code) string { return c.Hash }); err != nil {
		b.links.Close()
		return nil, err
	}
	return b, nil
}

// Close stops the watches and waits for them.
func (b *Book) Close() {
	b.codes.Close()
	b.links.Close()
}

func (b *Book) now() time.Time { return b.o.Now().UTC().Round(0) }

// Code creates a code for a signed-in principal. It returns the code and its expiry.
func (b *Book) Code(ctx context.Context, who schema.Principal) (string, time.Time, error) {
	text := rand.Text()[:16] // 80 random bits
	until := b.now().Add(codeFor)
	if _, err := b.codes.Create(ctx, code{Hash: hashOf(text), Principal: who.Name, Expires: until}); err != nil {
		return "", time.Time{}, unavailable(err)
	}
	return text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:], until, nil
}

func hashOf(text string) string {
	plain := strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(text))
	sum := sha256.Sum256([]byte(plain))
	return hex.EncodeToString(sum[:])
}

func unavailable(err error) error {
	return schema.Errorf(schema.KindUnavailable, "Connected Slack accounts cannot be read at the moment; try again soon. (%w)", err).RetryableAfter(0)
}

func errNoCode() error {
	return schema.Errorf(schema.KindNotFound, "The code does not exist, was used, or has expired. Get a new one on the approver's Slack page and enter all of it.")
}

// Typed records a code that a Slack account typed. It does not connect the account: the person who
// got the code must confirm it with [Book.Accept].
func (b *Book) Typed(ctx context.Context, text string, u User) error {
	if len(text) > 64 {
		return errNoCode()
	}
	c, revision, err := b.codes.Fresh(ctx, hashOf(text))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return errNoCode()
	case err != nil:
		return unavailable(err)
	case c.User != nil || c.Used || !b.now().Before(c.Expires):
		return errNoCode()
	}
	c.User = &u
	_, err = b.codes.Replace(ctx, c, revision)
	switch {
	case errors.Is(err, bus.ErrConflict):
		return errNoCode() // another account typed it concurrently
	case err != nil:
		return unavailable(err)
	}
	return nil
}

// Offered returns the Slack accounts that typed a code of the principal and wait for its
// confirmation.
func (b *Book) Offered(who schema.Principal) []User {
	var all []User
	for _, c := range b.codes.All() {
		if c.Principal == who.Name && c.User != nil && !c.Used && b.now().Before(c.Expires) && !slices.Contains(all, *c.User) {
			all = append(all, *c.User)
		}
	}
	return all
}

// Accept connects an account that typed a code of this principal. began is the time at which the
// person signed in on the page, and thus the age of its groups. An account and a principal have at
// most one link each. The new link replaces earlier ones.
func (b *Book) Accept(ctx context.Context, who schema.Principal, began time.Time, team, user string) error {
	none := schema.Errorf(schema.KindNotFound, "This account has not entered your code, or the code has expired. Get a new code.")
	var found code
	for _, c := range b.codes.All() {
		if c.Principal == who.Name && c.User != nil && c.User.Team == team && c.User.ID == user && !c.Used {
			found = c
		}
	}
	if found.Hash == "" {
		return none
	}
	c, revision, err := b.codes.Fresh(ctx, found.Hash)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return none
	case err != nil:
		return unavailable(err)
	case c.Used || c.User == nil || c.Principal != who.Name || c.User.Team != team || c.User.ID != user || !b.now().Before(c.Expires):
		return none
	}
	c.Used = true
	if _, err := b.codes.Replace(ctx, c, revision); err != nil {
		if errors.Is(err, bus.ErrConflict) {
			return none
		}
		return unavailable(err)
	}
	if err := b.Remove(ctx, who); err != nil {
		return err
	}
	link := Link{User: *c.User, Principal: who.Name, Owner: who.Owner, Tenant: who.Tenant, At: b.now()}
	if provided(who.Name) {
		link.Groups, link.SignedIn = who.Groups, began.UTC().Round(0)
	} else {
		key, ok := b.o.Keys.Find(who.Name)
		if !ok {
			return schema.Errorf(schema.KindForbidden, "Only people who sign in to the approver can connect a Slack account.")
		}
		link.Key = schema.Digest([]byte(key.Hash))
	}
	return b.put(ctx, link)
}

// put writes a link, overwriting an existing one.
func (b *Book) put(ctx context.Context, link Link) error {
	for range 5 {
		_, revision, err := b.links.Fresh(ctx, linkKey(link.User.Team, link.User.ID))
		switch {
		case errors.Is(err, bus.ErrNotFound):
			_, err = b.links.Create(ctx, link)
		case err == nil:
			_, err = b.links.Replace(ctx, link, revision)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, bus.ErrConflict) {
			return unavailable(err)
		}
	}
	return unavailable(bus.ErrConflict)
}

// provided reports whether a principal comes from an identity provider.
func provided(name string) bool { return strings.HasPrefix(name, settings.NamePrefix) }

// Connected returns the link of a principal.
func (b *Book) Connected(who schema.Principal) (Link, bool) {
	for _, l := range b.links.All() {
		if l.Principal == who.Name {
			return l, true
		}
	}
	return Link{}, false
}

// Remove ends the links of a principal.
func (b *Book) Remove(ctx context.Context, who schema.Principal) error {
	for _, l := range b.links.All() {
		if l.Principal == who.Name {
			if err := b.RemoveUser(ctx, l.User.Team, l.User.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// RemoveUser ends the link of an account.
func (b *Book) RemoveUser(ctx context.Context, team, user string) error {
	if err := b.links.Delete(ctx, linkKey(team, user)); err != nil {
		return unavailable(err)
	}
	return nil
}

// SignedIn records that a person has signed in at the provider. A connected person gets the groups
// of that sign-in.
func (b *Book) SignedIn(ctx context.Context, who schema.Principal) error {
	known, ok := b.Connected(who)
	if !ok || !provided(who.Name) {
		return nil
	}
	for range 5 {
		l, revision, err := b.links.Fresh(ctx, linkKey(known.User.Team, known.User.ID))
		if errors.Is(err, bus.ErrNotFound) || err == nil && l.Principal != who.Name {
			return nil
		}
		if err != nil {
			return unavailable(err)
		}
		l.Groups, l.Owner, l.SignedIn = who.Groups, who.Owner, b.now()
		if _, err = b.links.Replace(ctx, l, revision); !errors.Is(err, bus.ErrConflict) {
			return err
		}
	}
	return unavailable(bus.ErrConflict)
}

// Of returns the principal of a Slack account, with its current groups. It is called for each click.
// The error is of KindForbidden, with a sentence for the person, if the account is not connected,
// and of KindUnavailable if that cannot be determined.
func (b *Book) Of(ctx context.Context, team, user string) (schema.Principal, error) {
	l, _, err := b.links.Fresh(ctx, linkKey(team, user))
	if errors.Is(err, bus.ErrNotFound) {
		return schema.Principal{}, schema.Errorf(schema.KindForbidden, "Your Slack account is not connected. Sign in at %s and connect it; then decide again.", b.o.Page())
	}
	if err != nil {
		return schema.Principal{}, unavailable(err)
	}
	if provided(l.Principal) {
		if b.now().Sub(l.SignedIn) >= b.o.SignInFor {
			return schema.Principal{}, schema.Errorf(schema.KindForbidden, "Your last sign-in has expired, so your groups are unknown. Sign in at %s; then decide again.", b.o.Page())
		}
		return b.inTenant(schema.Principal{Name: l.Principal, Owner: l.Owner, Groups: l.Groups, Tenant: l.Tenant})
	}
	key, ok := b.o.Keys.Find(l.Principal)
	if !ok || l.Key != schema.Digest([]byte(key.Hash)) || !key.Expires.IsZero() && !b.now().Before(key.Expires) {
		return schema.Principal{}, schema.Errorf(schema.KindForbidden, "The key with which you connected your Slack account is no longer valid. Sign in at %s and connect it again.", b.o.Page())
	}
	return b.inTenant(key.Principal)
}

// inTenant returns the person, unless its tenant was removed from the configuration since the
// account was connected.
func (b *Book) inTenant(who schema.Principal) (schema.Principal, error) {
	if err := b.o.Tenants.Check(who.Tenant); err != nil {
		return schema.Principal{}, schema.Errorf(schema.KindForbidden, "Your tenant is not configured, so your decisions do not count. Ask the operator to add it to the section tenants. (%w)", err)
	}
	return who, nil
}
