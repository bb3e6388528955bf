package datakey

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	oneKey = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	twoKey = "YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlqYWI="
)

// keys are those of a file with these lines.
func keys(t testing.TB, lines ...string) *credential.Keys {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := credential.LoadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func connect(t testing.TB, s *bustest.Server) *bus.Conn {
	t.Helper()
	c, err := bus.Connect(t.Context(), bus.Options{Name: "test", URL: s.URL, Provision: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// open is what one process has.
func open(t testing.TB, s *bustest.Server, k *credential.Keys) *Ring {
	t.Helper()
	r, err := Open(t.Context(), connect(t, s), k, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func seal(t testing.TB, r *Ring, tenant schema.TenantID, text string) []byte {
	t.Helper()
	b, err := r.Seal(t.Context(), tenant, []byte(text), "call", "1")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestConcurrentProcessesMakeOneTenantKey(t *testing.T) {
	s, k := bustest.Start(t), keys(t, oneKey)
	rings := []*Ring{open(t, s, k), open(t, s, k), open(t, s, k)}
	sealed := make([][]byte, 30)
	var all sync.WaitGroup
	for i := range sealed {
		all.Go(func() { sealed[i] = seal(t, rings[i%3], "red", "canary") })
	}
	all.Wait()
	for i, b := range sealed {
		if bytes.Contains(b, []byte("canary")) || len(b) != len("canary")+Overhead || !bytes.Equal(b[:len(magic)+idBytes], sealed[0][:len(magic)+idBytes]) {
			t.Errorf("%d: %x", i, b)
		}
		// Another process than the one that sealed, whose watch may be behind.
		if plain, err := rings[(i+1)%3].Open(t.Context(), b, "call", "1"); err != nil || string(plain) != "canary" {
			t.Errorf("%d: %q, %v", i, plain, err)
		}
	}
	if rows, err := rings[0].table.all(t.Context()); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestSealedDataIsBoundToItsPlaceAndTenant(t *testing.T) {
	s, k := bustest.Start(t), keys(t, oneKey)
	r := open(t, s, k)
	red, blue := seal(t, r, "red", "canary"), seal(t, r, "blue", "canary")
	for _, place := range [][]string{{"call", "2"}, {"call"}, {"call1"}, {"result", "1"}, nil} {
		if _, err := r.Open(t.Context(), red, place...); !errors.Is(err, ErrUnreadable) || !Gone(err) {
			t.Errorf("%q: %v", place, err)
		}
	}
	mixed := append(bytes.Clone(blue[:len(magic)+idBytes]), red[len(magic)+idBytes:]...)
	if _, err := r.Open(t.Context(), mixed, "call", "1"); !errors.Is(err, ErrUnreadable) {
		t.Errorf("under the key of another tenant: %v", err)
	}
	for _, plain := range []string{"", `{"a":1}`, "\xCA\xD5"} {
		if b, err := r.Open(t.Context(), []byte(plain), "call", "1"); err != nil || string(b) != plain {
			t.Errorf("what was stored in the clear: %q, %v", b, err)
		}
	}
	var none *Ring
	if b, err := none.Seal(t.Context(), "red", []byte("x"), "call"); err != nil || string(b) != "x" {
		t.Errorf("without keys: %q, %v", b, err)
	}
	if _, err := none.Open(t.Context(), red, "call", "1"); !errors.Is(err, ErrNoKeys) || Gone(err) {
		t.Errorf("a sealed one without keys: %v", err)
	}
	b, err := r.Seal(t.Context(), "", []byte("x"))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.of[schema.DefaultTenant] == nil {
		t.Errorf("of the default tenant: %q, %v", b, err)
	}
}

func TestDestroyedKeyIsErasedEverywhere(t *testing.T) {
	s, k := bustest.Start(t), keys(t, oneKey)
	r, other := open(t, s, k), open(t, s, k)
	told := make(chan schema.TenantID, 1)
	other.OnDestroyed(func(tenant schema.TenantID) { told <- tenant })
	red, blue := seal(t, r, "red", "canary"), seal(t, other, "blue", "canary")
	row, err := r.table.last(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := r.keys.Open(row.Key, wrapPlace("red", row.ID)...)
	if err != nil {
		t.Fatal(err)
	}
	wrapped, _ := json.Marshal(row.Key)
	traces := [][]byte{row.Key, bytes.Trim(wrapped, `"`), raw, []byte(base64.StdEncoding.EncodeToString(raw))}
	if len(s.Holds(t, traces...)) == 0 {
		t.Fatal("the key is not found where it is")
	}
	begun := time.Now()
	if err := r.Destroy(t.Context(), "red"); err != nil {
		t.Fatal(err)
	}
	select {
	case tenant := <-told:
		if t.Logf("another process dropped the key after %s", time.Since(begun)); tenant != "red" {
			t.Errorf("another process dropped the key of %q", tenant)
		}
	case <-time.After(time.Minute):
		t.Fatal("another process is not told")
	}
	fresh := open(t, s, k)
	for _, r := range []*Ring{r, other, fresh} {
		if _, err := r.Open(t.Context(), red, "call", "1"); !errors.Is(err, ErrDestroyed) {
			t.Errorf("it can be opened: %v", err)
		}
		if b, err := r.Open(t.Context(), blue, "call", "1"); err != nil || string(b) != "canary" {
			t.Errorf("another tenant's: %q, %v", b, err)
		}
	}
	if found := s.Holds(t, traces...); len(found) > 0 {
		t.Errorf("the key is still in files: %s", found)
	}
	s.Stop()
	if found := s.Holds(t, traces...); len(found) > 0 {
		t.Errorf("the key is still in files of a stopped server: %s", found)
	}
}

func TestTenantGetsANewKeyAfterErasure(t *testing.T) {
	s, k := bustest.Start(t), keys(t, oneKey)
	r := open(t, s, k)
	old := seal(t, r, "red", "old")
	for range 2 {
		if err := r.Destroy(t.Context(), "red"); err != nil {
			t.Fatal(err)
		}
	}
	next := seal(t, r, "red", "new")
	if _, err := r.Open(t.Context(), old, "call", "1"); !errors.Is(err, ErrDestroyed) {
		t.Errorf("the old one: %v", err)
	}
	if b, err := open(t, s, k).Open(t.Context(), next, "call", "1"); err != nil || string(b) != "new" {
		t.Errorf("the new one: %q, %v", b, err)
	}
	if err := r.Destroy(t.Context(), "nobody"); err != nil {
		t.Errorf("a tenant without a key: %v", err)
	}
}

func TestWatchersAreNotifiedOfEachErasure(t *testing.T) {
	s, k := bustest.Start(t), keys(t, oneKey)
	c := connect(t, s)
	r := open(t, s, k)
	old := seal(t, r, "red", "old")
	for _, tenant := range []schema.TenantID{"red", "nobody"} {
		if err := Erase(t.Context(), c, tenant); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open(t, s, k).Open(t.Context(), old, "call", "1"); !errors.Is(err, ErrDestroyed) {
		t.Errorf("without the ring: %v", err)
	}
	told := make(chan schema.TenantID, 10)
	w, err := WatchErased(t.Context(), c, func(tenant schema.TenantID, at time.Time) {
		if since := time.Since(at); since < 0 || since > time.Minute {
			t.Errorf("%q was erased at %s", tenant, at)
		}
		told <- tenant
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if a, b := <-told, <-told; a != "red" || b != "nobody" {
		t.Errorf("of before: %q, %q", a, b)
	}
	if err := Erase(t.Context(), c, "nobody"); err != nil { // each time, though it has no key
		t.Fatal(err)
	}
	select {
	case tenant := <-told:
		if tenant != "nobody" {
			t.Errorf("told of %q", tenant)
		}
	case <-time.After(time.Minute):
		t.Error("not told again")
	}
}

func TestTenantKeysAreRewrappedWithTheNewestKey(t *testing.T) {
	s := bustest.Start(t)
	red := seal(t, open(t, s, keys(t, oneKey)), "red", "canary")
	first, err := open(t, s, keys(t, oneKey)).table.last(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), connect(t, s), keys(t, twoKey), true, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "encryption.key_file") {
		t.Fatalf("it starts without the key: %v", err)
	}
	open(t, s, keys(t, twoKey, oneKey))
	if b, err := open(t, s, keys(t, twoKey)).Open(t.Context(), red, "call", "1"); err != nil || string(b) != "canary" {
		t.Errorf("with the new key alone: %q, %v", b, err)
	}
	wrapped, _ := json.Marshal(first.Key)
	if found := s.Holds(t, bytes.Trim(wrapped, `"`)); len(found) > 0 {
		t.Errorf("what the former key wrapped is still there: %s", found)
	}
}

// TestAProcessThatIsNotRestartedYetSealsDuringARotation restarts the front doors one after the other, as
// the documentation says.
func TestAProcessThatIsNotRestartedYetSealsDuringARotation(t *testing.T) {
	s, file := bustest.Start(t), filepath.Join(t.TempDir(), "keys")
	load := func(lines ...string) *credential.Keys {
		err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600)
		k, loading := credential.LoadKeys(file)
		if err := errors.Join(err, loading); err != nil {
			t.Fatal(err)
		}
		return k
	}
	running := open(t, s, load(oneKey))
	seal(t, running, "red", "canary")
	restarted := open(t, s, load(twoKey, oneKey))
	other := seal(t, restarted, "blue", "canary")
	if b, err := running.Open(t.Context(), other, "call", "1"); err != nil || string(b) != "canary" {
		t.Errorf("of a tenant that is new: %q, %v", b, err)
	}
	row, err := running.table.last(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	running.seen(row) // as its watch does, now or later
	if _, err := running.Seal(t.Context(), "red", []byte("x"), "call", "1"); err != nil {
		t.Errorf("after its key was wrapped again: %v", err)
	}
	counts, err := CountKeys(t.Context(), connect(t, s))
	if err != nil || len(counts) != 1 {
		t.Errorf("operator's keys in use: %v, %v", counts, err)
	}
}

func TestSealingReadsTheKeyFromNATSOnce(t *testing.T) {
	s := bustest.Start(t)
	r := open(t, s, keys(t, oneKey))
	seal(t, r, "red", "canary")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Seal(ended, "red", []byte("x")); err != nil {
		t.Errorf("a known key is asked for: %v", err)
	}
	if _, err := r.Seal(ended, "blue", []byte("x")); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("a new key without NATS: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	r := open(f, bustest.Start(f), keys(f, oneKey))
	f.Add([]byte("plain"))
	f.Add(magic[:])
	f.Add(seal(f, r, "red", "canary"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if plain, err := r.Open(context.Background(), b, "other"); err == nil && !bytes.Equal(plain, b) {
			t.Errorf("%x was opened", b)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	r := open(b, bustest.Start(b), keys(b, oneKey))
	plain := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Seal(b.Context(), "red", plain, "call", "1"); err != nil {
			b.Fatal(err)
		}
	}
}
