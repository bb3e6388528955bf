package authserver

import (
	"cmp"
	"context"
	"encoding/hex"
)

// EventKind is the kind of an event of a grant.
type EventKind string

const (
	Given    EventKind = "given"    // a person gave a program access
	Denied   EventKind = "denied"   // a person denied it
	Redeemed EventKind = "redeemed" // the program exchanged its code for tokens
	Renewed  EventKind = "renewed"  // it exchanged its refresh token
	Ended    EventKind = "ended"    // the access ended; see [Event.Why]
)

// Reasons why a grant ended.
const (
	ByPerson  = "by-person"  // the person, or an administrator, ended it
	ByProgram = "by-program" // the program revoked its refresh token
	ByReuse   = "by-reuse"   // a code or a refresh token was used twice
	ByExpiry  = "by-expiry"  // it expired
	ByRemoval = "by-removal" // the person may no longer sign in
	ByErasure = "by-erasure" // the tenant of the person was erased
)

// Event is an event of a grant, for the audit record. It contains no code and no token.
type Event struct {
	Kind EventKind
	// Grant is the ID of the grant, or "" if there is none.
	Grant            string
	Client, Resource string
	Scopes           []string
	// Person is the owner of the access. By is the person who caused the event: the owner or an
	// administrator. It is nil if the program did.
	Person  Person
	By      *Person
	Channel string
	Why     string
}

// Channels of events.
const (
	ChannelWeb     = "web"
	ChannelAPI     = "api"
	ChannelProgram = "oauth"
)

// record sends an event of a grant to the audit record.
func (s *Server) record(ctx context.Context, id []byte, one *grant, e Event) {
	if s.o.Record == nil {
		return
	}
	e.Grant, e.Client, e.Resource, e.Scopes, e.Person = hex.EncodeToString(id), one.Client, one.Resource, one.Scopes, one.Person
	e.Channel = cmp.Or(e.Channel, ChannelProgram)
	s.o.Record(context.WithoutCancel(ctx), &e)
}
