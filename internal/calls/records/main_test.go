package records

import (
	"flag"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files of this package")

// open opens a recorder until the test ends.
func open(t testing.TB, c *bus.Conn, o Options) *Recorder {
	t.Helper()
	if o.FrontDoor == "" {
		o.FrontDoor = schema.NewID("frontdoor")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	r, err := Open(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// idAt is a call id that was made at a time; the random part is the seed's.
func idAt(at time.Time, rnd *rand.Rand) string {
	k := keyAt(at)
	for i := 6; i < len(k); i++ {
		k[i] = byte(rnd.Uint32())
	}
	return string(k.id())
}

// readAllPages reads all pages.
func readAllPages(t testing.TB, r *Recorder, f Filter, limit int) []Record {
	t.Helper()
	var all []Record
	of, cursor := f.tenants, ""
	if of == (schema.Tenants{}) {
		of = schema.AllTenants()
	}
	for {
		page, next, err := r.List(t.Context(), of, f, cursor, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > limit {
			t.Fatalf("a page of %d for a limit of %d", len(page), limit)
		}
		all = append(all, page...)
		if next == "" {
			return all
		}
		if next == cursor {
			t.Fatal("the cursor does not move")
		}
		cursor = next
	}
}
