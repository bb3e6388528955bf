package authserver

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/endtable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Access is a grant as shown to people.
type Access struct {
	ID string
	// Client is the ID of the program, Name its own name, and Host the host of its metadata
	// document, or "" for a configured program.
	Client, Name, Host string
	Person             Person
	Resource           string
	Scopes             []string
	// Since is the time of the person's consent, Until the expiry. Used is the time at which the
	// program last got a token; zero means that it has not fetched the first one.
	Since, Used, Until time.Time
}

// access returns a grant as shown to people.
func (one *grant) access(id string) Access {
	c := Client{ID: one.Client, Document: goodClientID(one.Client)}
	return Access{ID: id, Client: one.Client, Name: one.Name, Host: c.Host(), Person: one.Person, Resource: one.Resource, Scopes: one.Scopes, Since: one.Given, Used: one.Renewed, Until: one.Until}
}

// Administers reports whether a person is an administrator of the server.
func (s *Server) Administers(groups []string) bool {
	return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(s.o.AdminGroups, g) })
}

// Accesses returns the active grants of all people for whom of returns true, newest first.
func (s *Server) Accesses(ctx context.Context, of func(*Person) bool) ([]Access, error) {
	rows, err := s.grants.rows.All(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	now, all := s.o.Now(), []Access{}
	for id, sealed := range rows {
		raw, err := hex.DecodeString(id)
		if err != nil {
			continue
		}
		one, err := s.grants.open(ctx, raw, sealed)
		if err != nil || !of(&one.Person) || !now.Before(one.Until) || !one.Used && !now.Before(one.CodeUntil) {
			continue
		}
		all = append(all, one.access(id))
	}
	slices.SortFunc(all, func(a, b Access) int { return cmp.Or(b.Since.Compare(a.Since), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

// End ends a grant. Its refresh token becomes invalid immediately, and each front door refuses its
// access tokens once it is notified. If may returns false for the person, the grant is reported as
// not found. The error is of KindNotFound or KindUnavailable.
func (s *Server) End(ctx context.Context, id string, by *Person, channel string, may func(*Person) bool) (*Access, error) {
	absent := schema.Errorf(schema.KindNotFound, "This access does not exist, has ended, or you may not see it.")
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != grantID || id != strings.ToLower(id) {
		return nil, absent
	}
	one, _, err := s.grants.get(ctx, raw)
	if errors.Is(err, bus.ErrNotFound) || err == nil && (!may(&one.Person) || !s.o.Now().Before(one.Until)) {
		return nil, absent
	}
	if err == nil {
		err = s.end(ctx, raw, one, Event{By: by, Channel: channel, Why: ByPerson})
	}
	if err != nil {
		return nil, unavailable(err)
	}
	s.o.Log.Info("the access of a program was ended", "grant", id, "client", one.Client, "name", one.Person.Name, "by", by.Name)
	told := one.access(id)
	return &told, nil
}

func unavailable(err error) error {
	return schema.Errorf(schema.KindUnavailable, "The access of programs cannot be read or changed at the moment; check that NATS is running. (%w)", err)
}

// end ends a grant and records it. It revokes access tokens first: if only that succeeds, tokens
// issued later for the refresh token are refused as well.
func (s *Server) end(ctx context.Context, id []byte, one *grant, e Event) error {
	if s.o.Now().Before(one.Until) { // after that, no token of it is valid
		if err := s.announceEnd(ctx, id); err != nil {
			return err
		}
	}
	if err := s.grants.end(ctx, id); err != nil {
		return err
	}
	e.Kind = Ended
	s.record(ctx, id, one, e)
	return nil
}

// announceEnd notifies every front door to refuse the access tokens of a grant.
func (s *Server) announceEnd(ctx context.Context, id []byte) error {
	name := hex.EncodeToString(id)
	row, err := json.Marshal(endtable.End{Grant: name, At: s.o.Now().UTC()})
	if err == nil {
		_, err = s.ends.Put(ctx, name, row)
	}
	return err
}
