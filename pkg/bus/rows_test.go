package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestATableSeesWritesSoonAfterARestartOfNATS(t *testing.T) {
	srv := bustest.Start(t)
	changed := make(chan struct{}, 100)
	opening, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	writer, err := openSwitches(opening, srv.Connect(t, "writer"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(writer.Close)
	reader, err := openSwitches(opening, srv.Connect(t, "reader"), func() { changed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	put := func(reason string) {
		t.Helper()
		again := time.NewTicker(100 * time.Millisecond)
		defer again.Stop()
		for tries := 0; ; tries++ {
			once, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			err := writer.Put(once, toolSwitch{Server: "s", Tool: "t", Reason: reason})
			cancel()
			if err == nil {
				return
			}
			if tries == 100 {
				t.Fatal(err)
			}
			<-again.C
		}
	}
	sees := func(reason string, within time.Duration) {
		t.Helper()
		late := time.NewTimer(within)
		defer late.Stop()
		for {
			if s, _ := reader.Get(switchKey("s", "t")); s.Reason == reason {
				return
			}
			select {
			case <-changed:
			case <-late.C:
				t.Fatalf("%q was not seen within %s", reason, within)
			}
		}
	}
	put("before")
	sees("before", 10*time.Second)
	srv.Stop()
	srv.Again(t)
	put("after")
	// With nats.go's heartbeats the reader would miss this for about 26 s.
	sees("after", 15*time.Second)
	if err := writer.Delete(t.Context(), switchKey("s", "t")); err != nil {
		t.Fatal(err)
	}
	for {
		if _, there := reader.Get(switchKey("s", "t")); !there {
			break
		}
		<-changed
	}
	again, err := openSwitches(t.Context(), srv.Connect(t, "late"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if all := again.All(); len(all) != 0 {
		t.Errorf("a removed row is still there: %v", all)
	}
}

// toolSwitch is a row in the format of internal/store/switchtable.
type toolSwitch struct {
	Server, Tool, Reason string
	At                   time.Time
}

func switchKey(server, tool string) string { return bus.Token(server) + "." + bus.Token(tool) }

func openSwitches(ctx context.Context, c *bus.Conn, changed func()) (*bus.Table[toolSwitch], error) {
	spec := bus.TableSpec{Bucket: bus.BucketSwitches, What: "tools switched off", History: 5}
	return bus.OpenTable(ctx, c, spec, func(s *toolSwitch) string { return switchKey(s.Server, s.Tool) }, changed)
}
