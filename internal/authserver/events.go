package authserver

import (
	"context"
	"encoding/hex"
)

// EventKind says what happened to a grant.
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
	ByExpiry  = "by-expiry"  // its time has ended
	ByRemoval = "by-removal" // the person may not sign in any more
	ByErasure = "by-erasure" // the tenant of the person was erased
)

// Event is something that happened to a grant, for the audit record. It has no code and no
// token.
type Event struct {
	Kind EventKind
	// Grant is the id of the grant; "" where there is none.
	Grant            string
	Client, Resource string
	Scopes           []string
	// Person is whose access it is, By who did it: the person, an administrator, or "" for the
	// program.
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

// tell records what happened to a grant.
func (s *Server) tell(ctx context.Context, id []byte, one *grant, e Event) {
	if s.o.Record == nil {
		return
	}
	e.Grant, e.Client, e.Resource, e.Scopes, e.Person = hex.EncodeToString(id), one.Client, one.Resource, one.Scopes, one.Person
	if e.Channel == "" {
		e.Channel = ChannelProgram
	}
	s.o.Record(context.WithoutCancel(ctx), &e)
}
