package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

// TestWorkerDrainOverAPILosesNoCall drains one of two workers under load: it
// finishes its calls, its process exits with 0, and the other one runs further calls. A worker that
// is part of `callyard up` is not drained.
func TestWorkerDrainOverAPILosesNoCall(t *testing.T) {
	t.Parallel()
	f := startZones(t, t.TempDir(), serversFile(t, map[string]entry{"everywhere": scripted(mcptest.Echo)}))
	d := f.doors[0]
	d.waitServers(t, 2, "everywhere")
	leaving := f.workers[1]
	l := startLoad(t, 8, func(int, int) error {
		a, err := d.tryCall("everywhere", "sleep", `{"ms":20}`)
		if err == nil && a.status != http.StatusOK {
			err = &refusal{a}
		}
		return err
	})
	l.more(t, 100)
	if a := d.ask(t, "POST", "/workers/"+leaving.id+"/drain", ""); a.status != http.StatusAccepted || !strings.Contains(string(a.body), "draining") {
		t.Errorf("%d %s", a.status, a.body)
	}
	leaving.wait(t, stopWithin)
	leaving.says(t, "an operator drains this worker")
	l.more(t, 100)
	l.end()
	l.none(t, "calls while a worker was drained")
	d.eventually(t, startWithin, "that it is gone", func() error {
		if a := d.ask(t, "POST", "/workers/"+leaving.id+"/drain", ""); a.status != http.StatusNotFound {
			return fmt.Errorf("%d %s", a.status, a.body)
		}
		return nil
	})

	up := startUp(t, setup{env: []string{quickStop}})
	var list struct{ Workers []struct{ ID string } }
	up.read(t, "/workers", &list)
	if a := up.ask(t, "POST", "/workers/"+list.Workers[0].ID+"/drain", ""); a.status != http.StatusConflict || !strings.Contains(string(a.body), "callyard up") {
		t.Errorf("the worker of callyard up: %d %s", a.status, a.body)
	}
}
