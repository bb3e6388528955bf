package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A killed process leaves no seal, so its folder is only checked for consistency. If the
// start is not refused, no acknowledged data is missing.
func TestADamagedDataFolderIsNoticedAfterAKill(t *testing.T) {
	k := keepAs(t, func(d *door) {
		// The call records are written shortly after the approvals that they name.
		d.eventually(t, startWithin, "the record of the held call", func() error {
			if a := d.ask(t, "GET", "/calls?state=held", ""); !bytes.Contains(a.body, []byte("pay")) {
				return fmt.Errorf("%d %s", a.status, a.body)
			}
			return nil
		})
		d.kill9(t)
	})
	whole := k.damaged(t, k.files(t)[0], func(string, []byte) error { return nil })
	if _, started := k.tries(t, whole); !started {
		t.Fatal("the folder of a killed process is refused")
	}
	all := os.Getenv("CALLYARD_DAMAGE") == "all"
	files, refused, unharmed := 0, 0, 0
	for _, file := range k.files(t) {
		if strings.HasPrefix(file, "room-") {
			continue
		}
		files++
		for _, d := range damages {
			journals := strings.HasSuffix(file, ".blk") && (strings.Contains(file, "callyard_calls") && d.name == "truncate" || strings.Contains(file, "callyard_results") && d.name == "flip" || strings.Contains(file, "callyard_keys") && d.name == "remove" || strings.Contains(file, "callyard_ledger") && d.name == "empty")
			if !all && !journals {
				continue // all combinations take twenty minutes
			}
			t.Run(d.name+" "+file, func(t *testing.T) {
				dir := k.damaged(t, file, d.do)
				said, started := k.tries(t, dir)
				if !started {
					refused++
					stream := filepath.Base(filepath.Dir(filepath.Dir(file)))
					if !dataFolder.MatchString(said) || !strings.Contains(said, filepath.Base(file)) && !strings.Contains(said, stream) {
						t.Errorf("it does not start, and does not say why: %s", said)
					}
					return
				}
				unharmed++
				k.whole(t, dir)
			})
		}
	}
	t.Logf("%d files; the start was refused %d times, and %d times nothing was lost", files, refused, unharmed)
	k.once(t)
}

// An accepted loss after a kill works like one after a stop: nothing runs twice, and the
// next start, after another kill, does not ask again.
func TestALossAfterAKillIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	k := keepAs(t, func(d *door) { d.kill9(t) })
	for _, file := range k.files(t) {
		for _, d := range damages {
			if strings.HasSuffix(file, "callyard_calls/msgs/1.blk") && d.name == "truncate" || strings.HasSuffix(file, "callyard_keys/msgs/1.blk") && d.name == "remove" {
				t.Run(d.name+" "+file, func(t *testing.T) {
					dir := k.damaged(t, file, d.do)
					up := k.start(t, dir, "--accept-loss")
					for i := range k.calls {
						if a := k.send(t, up, i); a.header.Get("Idempotency-Replayed") != "true" && (a.status != http.StatusGatewayTimeout || !strings.Contains(string(a.body), "outcome-unknown")) {
							t.Errorf("the key of call %d: %d %s", i, a.status, a.body)
						}
					}
					k.told(t, up, file)
					up.kill9(t)
					k.start(t, dir).stop(t)
					k.once(t)
				})
			}
		}
	}
}
