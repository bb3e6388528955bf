package e2e

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

// checkSizes makes calls with results of many sizes, ten concurrently, and compares every
// byte of them.
func checkSizes(t *testing.T, d *door) {
	t.Helper()
	for _, c := range []struct{ bytes, calls int }{{20_000, 200}, {90_000, 100}, {1 << 20, 40}, {20 << 20, 10}} {
		head, tail := []byte(`{"content":[{"type":"text","text":"`), []byte(`"}]}`)
		want := append(append(append([]byte(nil), head...), bytes.Repeat([]byte("x"), c.bytes)...), tail...)
		l := runCalls(10, c.calls, func(int) error {
			a, err := d.tryCall("big", "big", fmt.Sprintf(`{"bytes":%d}`, c.bytes))
			switch {
			case err != nil:
				return err
			case a.status != 200:
				return &refusal{a}
			case !bytes.Equal(a.body, want):
				return fmt.Errorf("the %d bytes that came are not the %d that were sent", len(a.body), len(want))
			}
			return nil
		})
		l.none(t, fmt.Sprintf("answers of %d bytes", c.bytes))
		if got := l.calls.Load(); got != int64(c.calls) {
			t.Errorf("%d calls ended, want %d", got, c.calls)
		}
	}
}

func TestResponsesOfEverySizeAreCompleteInOneProcess(t *testing.T) {
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"big": scripted(mcptest.Echo)}), env: []string{quickStop}})
	up.waitServers(t, 1, "big")
	checkSizes(t, up)
}

func TestResponsesOfEverySizeAreCompleteOverDefaultNATS(t *testing.T) {
	nats := startNATS(t, t.TempDir())
	startWorker(t, setup{nats: nats.url, servers: serversFile(t, map[string]entry{"big": scripted(mcptest.Echo)})})
	d := startFrontDoor(t, setup{nats: nats.url, env: []string{quickStop}})
	d.waitServers(t, 1, "big")
	checkSizes(t, d)
}
