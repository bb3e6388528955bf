package sessiontable

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestAPrincipalFillsOnlyItsShareOfTheTable(t *testing.T) {
	var s shares
	start := time.Now()
	ann, ben := owner{"red", "ann"}, owner{"blue", "ann"}
	fill := func(o owner, now time.Time) (bytes int) {
		for s.take(o, 1<<10, now) {
			bytes += 1 << 10
		}
		return bytes
	}
	if n := fill(ann, start); n != share {
		t.Errorf("the principal added %d bytes, want %d", n, share)
	}
	if !s.take(ben, 1, start) {
		t.Error("the principal of the same name in another tenant has no share of its own")
	}
	if n := fill(ann, start.Add(kept/4)); n != share/4 {
		t.Errorf("after a quarter of the time, the principal added %d bytes, want %d", n, share/4)
	}
	if n := fill(ann, start.Add(3*kept)); n != share {
		t.Errorf("after all rows have expired, the principal added %d bytes, want %d", n, share)
	}
}

func TestPrincipalsThatAddedNothingLatelyTakeNoMemory(t *testing.T) {
	var s shares
	now := time.Now()
	for i := range 10 * minPrune {
		now = now.Add(kept)
		s.take(owner{principal: fmt.Sprint(i)}, 1, now)
	}
	if len(s.by) > minPrune {
		t.Errorf("%d principals are kept", len(s.by))
	}
}

func TestOnlyNewSessionsCountAgainstTheShare(t *testing.T) {
	table, err := Open(t.Context(), bustest.Start(t).Connect(t, "test"), func(string, uint64, bool) {})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	ann := Session{Principal: "ann", Capabilities: []byte(`"` + strings.Repeat("x", share/2) + `"`)}
	if _, err := table.Add(t.Context(), "", Key("1"), ann); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := table.Put(t.Context(), "", Key("1"), ann); err != nil {
			t.Errorf("a change of a session: %v", err)
		}
	}
	if _, err := table.Add(t.Context(), "", Key("2"), ann); !errors.Is(err, ErrShare) {
		t.Errorf("a session beyond the share: %v", err)
	}
	if _, err := table.Add(t.Context(), "", Key("3"), Session{Principal: "ben"}); err != nil {
		t.Errorf("a session of another principal: %v", err)
	}
}
