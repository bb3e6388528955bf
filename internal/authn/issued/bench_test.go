package issued

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/store/keytable"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// Must hold: at most 2 µs for a known key.
func BenchmarkAKnownKey(b *testing.B) {
	k := open(b, bustest.Start(b))
	_, secret := k.must(b, "ci", scope.ReadTools, "tools:call:files")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Authenticate(b.Context(), secret); err != nil {
			b.Fatal(err)
		}
	}
}

// Must hold: at most 10 MB for 10,000 keys, all of which were used.
func TestTenThousandKeysTakeLittleMemory(t *testing.T) {
	count := 10_000
	if testing.Short() {
		count = 5000
	}
	srv := bustest.StartProcess(t) // its memory is not that of the keys
	k := open(t, srv)
	secrets := make([]string, count)
	for i := range secrets {
		name := fmt.Sprint("key number ", i)
		secrets[i] = newSecret(IDOf(name))
		row := keytable.Key{ID: IDOf(name), Name: name, Owner: "build team", Groups: []string{"dev"}, Scopes: []string{scope.ReadTools, "tools:call:files"}, Hash: digest(secrets[i]), CreatedBy: "ops", ChangedBy: "ops", Expires: 1 << 40}
		if _, err := k.table().Create(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	conn := srv.Connect(t, "frontdoor")
	other := Open(t.Context(), Options{Conn: conn, Log: slog.New(slog.DiscardHandler)})
	for _, s := range secrets {
		if _, err := other.Authenticate(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	other.stop() // its uses would be written at the end
	other.work.Wait()
	heap := func() int64 {
		var now runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools held
		runtime.ReadMemStats(&now)
		return int64(now.HeapAlloc)
	}
	with := heap()
	other.table().Close()
	conn.Close()
	runtime.KeepAlive(other)
	other = nil
	took := with - heap()
	t.Logf("%d keys take %.1f MB", count, float64(took)/1e6)
	if took > int64(1000*count) || took < int64(100*count) {
		t.Errorf("%d keys take %d bytes", count, took)
	}
}
