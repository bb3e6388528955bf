package bus

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFaultThatRepeatsIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		f := &faults{log: slog.New(slog.NewTextHandler(&lines, nil))}
		logged := func() int { return strings.Count(lines.String(), "NATS reported an error") }
		for range 600 {
			f.report("", errors.New("permissions violation"))
			f.report("a", errors.New("slow consumer"))
			time.Sleep(100 * time.Millisecond)
		}
		if n := logged(); n != 2 {
			t.Errorf("%d lines for two faults in a minute", n)
		}
		f.report("", errors.New("permissions violation"))
		if n := logged(); n != 3 || !strings.Contains(lines.String(), "left_out=1198") {
			t.Errorf("%d lines:\n%s", n, lines.String())
		}
		for i := range 1000 {
			f.report(fmt.Sprint("inbox.", i), errors.New("permissions violation"))
		}
		if n := logged(); n > 3+maxFaults {
			t.Errorf("%d lines for faults of as many subjects", n)
		}
		before := logged()
		f.again()
		f.report("", errors.New("permissions violation"))
		if n := logged(); n != before+1 {
			t.Error("a fault after a reconnect is not logged")
		}
	})
}
