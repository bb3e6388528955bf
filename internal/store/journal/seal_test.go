package journal

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// openSealed is a store that seals, its server, and the data keys.
func openSealed(t *testing.T) (*Store, *bustest.Server, *datakey.Ring) {
	t.Helper()
	nats := bustest.Start(t)
	conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", URL: nats.URL, Provision: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	keys, err := credential.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	ring, err := datakey.Open(t.Context(), conn, keys, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ring.Close)
	s, err := Open(t.Context(), conn, Options{DataKeys: ring, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, nats, ring
}

// canary is what a tenant stored, with a size.
func canary(n int) []byte { return bytes.Repeat([]byte("canary-"), n/7+1) }

func TestJournalsAreEncryptedAndUnreadableAfterTenantErasure(t *testing.T) {
	s, nats, ring := openSealed(t)
	m := &Manifest{Kind: Lane, Principal: schema.Principal{Name: "frontdoor"}, Expires: time.Now().Add(time.Hour)}
	w, err := s.Begin(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	red, blue := schema.Principal{Name: "ann", Tenant: "red"}, schema.Principal{Name: "bob", Tenant: "blue"}
	small, large := canary(100), canary(600<<10)
	calls := []CallRecord{
		{ID: "1", Principal: red, Arguments: small, Extra: small}, {ID: "2", Principal: red, Arguments: large}, {ID: "3", Principal: blue, Arguments: small},
	}
	if _, err := w.Append(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if !bytes.Equal(calls[0].Arguments, small) {
		t.Error("the caller's record was changed")
	}
	o, err := s.Claim(t.Context(), "", m.ID, "test")
	if err != nil {
		t.Fatal(err)
	}
	ends := []ResultRecord{
		{Index: 0, CallID: "1", Tenant: "red", Outcome: Succeeded, Body: small}, {Index: 1, CallID: "2", Tenant: "red", Outcome: Failed, Error: large},
		{Index: 2, CallID: "3", Tenant: "blue", Outcome: Failed, Error: small},
	}
	if err := o.Results(t.Context(), ends...); err != nil {
		t.Fatal(err)
	}
	// look reads everything, from NATS and from the memory of what was just written.
	look := func(index uint64) (arguments, body []byte, err error) {
		t.Helper()
		tenant := schema.TenantID("red")
		if index == 2 {
			tenant = "blue"
		}
		c, err := s.FindCall(t.Context(), schema.OnlyTenant(tenant), m.ID, index)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.FindResult(t.Context(), tenant, m.ID, index, Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		if arguments, err = s.Arguments(t.Context(), tenant, m.ID, c); err != nil {
			return nil, nil, err
		}
		body, err = s.ResultBody(t.Context(), tenant, m.ID, r)
		return arguments, body, err
	}
	for i, want := range [][]byte{small, large, small} {
		if arguments, body, err := look(uint64(i)); err != nil || !bytes.Equal(arguments, want) || !bytes.Equal(body, want) {
			t.Errorf("call %d: %.20q, %.20q, %v", i, arguments, body, err)
		}
	}
	if read, err := o.Read(t.Context(), 0, 10); err != nil || len(read) != 3 || !bytes.Equal(read[0].Extra, small) {
		t.Errorf("the owner reads %d calls, %v", len(read), err)
	}
	if err := o.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := nats.Holds(t, []byte("canary"), []byte("Y2FuYXJ5")); len(found) > 0 {
		t.Errorf("readable: %s", strings.Join(found, ", "))
	}
	if err := ring.Destroy(t.Context(), "red"); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2) {
		if arguments, body, err := look(i); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("call %d of the deleted tenant: %.20q, %.20q, %v", i, arguments, body, err)
		}
	}
	if arguments, body, err := look(2); err != nil || !bytes.Equal(arguments, small) || !bytes.Equal(body, small) {
		t.Errorf("the call of another tenant: %.20q, %.20q, %v", arguments, body, err)
	}
	page, _, err := s.Results(t.Context(), "red", m.ID, Cursor{}, 10)
	if err != nil || len(page) != 2 || len(page[0].Body) > 0 || len(page[1].Error) > 0 {
		t.Errorf("a page of results: %d, %v", len(page), err)
	}
}
