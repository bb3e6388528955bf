package settable

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestASetOfAnotherTenantDoesNotExist(t *testing.T) {
	ctx := t.Context()
	srv := bustest.Start(t)
	conn := srv.Connect(t, "test")
	sets, err := Open(ctx, conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sets.Close()
	revisions := map[schema.TenantID]uint64{}
	for _, tenant := range []schema.TenantID{"", "red", "blue"} { // the same name, without knowing of each other
		if revisions[tenant], err = sets.Create(ctx, Set{Tenant: tenant, Name: "a.b", Definition: json.RawMessage(`{"name":"a.b"}`), By: string(tenant)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sets.Create(ctx, Set{Tenant: "red", Name: "a.b"}); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("a second one of red: %v", err)
	}
	for tenant, revision := range revisions {
		s, is, ok := sets.Get(tenant, "a.b")
		if !ok || is != revision || s.Tenant != tenant || s.By != string(tenant) || string(s.Definition) != `{"name":"a.b"}` {
			t.Errorf("%q: %+v, %d, %t", tenant, s, is, ok)
		}
		if all := sets.All(schema.OnlyTenant(tenant)); len(all) != 1 || all[0].Tenant != tenant {
			t.Errorf("%q: %+v", tenant, all)
		}
		if err := sets.Remove(ctx, tenant, "a.b", revision+100); !errors.Is(err, bus.ErrConflict) {
			t.Errorf("%q: a revision that is not the set's: %v", tenant, err)
		}
	}
	if _, _, ok := sets.Get("green", "a.b"); ok || len(sets.All(schema.Tenants{})) != 0 || len(sets.All(schema.AllTenants())) != 3 {
		t.Error("who asks for other tenants gets what is theirs")
	}
	for range 2 { // of which the first is of the past then
		if revisions["red"], err = sets.Replace(ctx, Set{Tenant: "red", Name: "a.b", Definition: json.RawMessage(`{"name":"a.b"}`)}, revisions["red"]); err != nil {
			t.Fatal(err)
		}
	}
	states := func() uint64 {
		stream, err := bustest.JetStream(t, srv.URL).Stream(ctx, "KV_"+bus.BucketSets)
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.Msgs
	}
	before := states()
	for _, want := range []int{1, 0} { // it may be repeated
		if n, err := RemoveTenant(ctx, conn, "red"); n != want || err != nil {
			t.Errorf("%d sets of red were removed, not %d: %v", n, want, err)
		}
	}
	if gone := before - states(); gone != 3-1 { // the mark that it is gone is in their place
		t.Errorf("%d states of the set of red are gone with it", gone)
	}
	again, err := Open(ctx, conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if all := again.All(schema.AllTenants()); len(all) != 2 || slices.ContainsFunc(all, func(s Set) bool { return s.Tenant == "red" }) {
		t.Errorf("left are %+v", all)
	}
}

// former is a set as versions stored it whose sets had no tenants.
type former struct {
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"`
	By         string          `json:"by,omitempty"`
	At         time.Time       `json:"at"`
}

// TestFormerVersionsAndThisOneReadTheSameSets has both open the table at the same time, as during
// an upgrade. The former one shows a set under the name in its row, if it can read the definition.
func TestFormerVersionsAndThisOneReadTheSameSets(t *testing.T) {
	ctx := t.Context()
	conn := bustest.Start(t).Connect(t, "test")
	changed := make(chan struct{}, 10)
	old, err := bus.OpenTable(ctx, conn, spec, func(f *former) string { return bus.Token(f.Name) }, func() { changed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	at := time.Now().UTC().Truncate(time.Second)
	if _, err := old.Create(ctx, former{"inst", json.RawMessage(`{"name":"inst"}`), "ann", at}); err != nil {
		t.Fatal(err)
	}
	sets, err := Open(ctx, conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sets.Close()
	s, revision, ok := sets.Get(schema.DefaultTenant, "inst")
	if !ok || s.Tenant != "" || s.By != "ann" || !s.At.Equal(at) || string(s.Definition) != `{"name":"inst"}` {
		t.Fatalf("what the former version stored: %+v, %t", s, ok)
	}
	for _, set := range []Set{{Name: "more", Definition: json.RawMessage(`{"name":"more"}`)}, {Tenant: "red", Name: "inst", Definition: json.RawMessage(`{"name":"inst"}`)}, {Tenant: "red", Name: "own", Definition: json.RawMessage(`{"name":"own"}`)}} {
		if _, err := sets.Create(ctx, set); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 { // its own one too
		<-changed
	}
	var names []string
	for _, f := range old.All() {
		var definition struct{ Name string }
		if json.Unmarshal(f.Definition, &definition) == nil {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"inst", "more"}) {
		t.Errorf("the former version shows %q", names)
	}
	if _, is, ok := old.Revision(bus.Token("inst")); !ok || is != revision {
		t.Errorf("the former version takes the set of a tenant for that of the installation: %d, %d", is, revision)
	}
}
