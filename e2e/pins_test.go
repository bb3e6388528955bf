package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// pinned is a fleet whose server changes its tool repeatedly.
type pinned struct {
	t      *testing.T
	folder string // of the server's version and runs
	nats   string
	listen []string
	doors  []*door
}

// become changes the version of the server.
func (p *pinned) become(version string) {
	p.t.Helper()
	path := filepath.Join(p.folder, "version")
	write(p.t, path+".new", version)
	if err := os.Rename(path+".new", path); err != nil {
		p.t.Fatal(err)
	}
}

// runs returns the number of calls that a version has received.
func (p *pinned) runs(version string) int {
	p.t.Helper()
	all, err := mcptest.Runs(p.folder)
	if err != nil {
		p.t.Fatal(err)
	}
	return all[version]
}

func (p *pinned) openDoor(i int) {
	p.t.Helper()
	d := startFrontDoor(p.t, setup{nats: p.nats, listen: p.listen[i], env: []string{quickStop}})
	if i == len(p.doors) {
		p.doors = append(p.doors, d)
	} else {
		p.doors[i] = d
	}
}

// refused waits until calls of the version are refused at a door, and returns the digest
// of its definition.
func (p *pinned) refused(d *door, version string) (digest string) {
	p.t.Helper()
	d.eventually(p.t, startWithin, "a refusal of "+version, func() error {
		a, err := d.tryCall("bank", "pay", `{}`)
		if err == nil && a.status != 403 {
			err = fmt.Errorf("%d: %s", a.status, a.body)
		}
		return err
	})
	var pins struct {
		Tools []struct {
			State, Digest string
			Definition    struct{ Description string }
		}
	}
	d.read(p.t, "/servers/bank/pins", &pins)
	if len(pins.Tools) != 1 || pins.Tools[0].State != "changed" || pins.Tools[0].Definition.Description != version {
		p.t.Fatalf("%+v, want %s", pins, version)
	}
	return pins.Tools[0].Digest
}

// A server in quarantine changes its tool eight times under load, at two workers, while
// front doors are stopped, killed and restarted and a worker is replaced. No call
// reaches a version before it is accepted.
func TestNoChangedDefinitionRunsBeforeItIsAccepted(t *testing.T) {
	p := &pinned{t: t, folder: t.TempDir()}
	p.become("v0")
	server := scripted(mcptest.Versions, mcptest.Folder(p.folder))
	server.Pin, server.Sessions = "quarantine", 2
	servers := serversFile(t, map[string]entry{"bank": server})
	broker := startNATS(t, t.TempDir())
	p.nats = broker.url
	workers := []*workerProcess{startWorker(t, setup{nats: p.nats, servers: servers}), startWorker(t, setup{nats: p.nats, servers: servers})}
	for range 2 {
		p.listen = append(p.listen, porttest.Address(t))
	}
	for i := range 2 {
		p.openDoor(i)
	}
	for _, d := range p.doors {
		d.waitServers(t, 2, "bank")
	}
	clients := client(t)
	var answers [6]atomic.Int64 // indexed by status / 100
	stored := 0
	l := startLoad(t, 12, func(lane, n int) error {
		headers := []string{}
		if lane%4 == 3 {
			headers = append(headers, "Prefer: respond-async")
		}
		a, err := send(clients, "http://"+p.listen[lane%2], "POST", toolPath("bank", "pay"), `{}`, headers...)
		if err == nil {
			answers[a.status/100].Add(1)
		}
		return nil // doors stop and start
	})
	l.more(t, 200)
	if p.runs("v0") == 0 {
		t.Fatal("nothing ran before the first change")
	}
	for round := 1; round <= 8; round++ {
		version := "v" + strconv.Itoa(round)
		p.become(version)
		digest := ""
		for _, d := range p.doors {
			digest = p.refused(d, version)
		}
		l.more(t, 100)
		switch i := round % 2; round % 4 {
		case 1:
			p.doors[i].stop(t)
			p.openDoor(i)
		case 2:
			p.doors[i].kill9(t)
			p.openDoor(i)
		case 3: // a server process with this version from its start
			workers[i].stop(t)
			workers[i] = startWorker(t, setup{nats: p.nats, servers: servers})
		}
		l.more(t, 100)
		for _, d := range p.doors {
			d.waitServers(t, 2, "bank")
			p.refused(d, version)
		}
		l.more(t, 100)
		if n := p.runs(version); n != 0 {
			t.Fatalf("%d calls reached %s before it was accepted", n, version)
		}
		body, _ := json.Marshal(map[string]any{"tools": []any{map[string]string{"name": "pay", "digest": digest}}})
		if a := p.doors[round%2].ask(t, "POST", "/servers/bank/pins", string(body)); a.status != 200 {
			t.Fatalf("%d: %s", a.status, a.body)
		}
		for _, d := range p.doors {
			d.eventually(t, soon, "running "+version, func() error {
				a, err := d.tryCall("bank", "pay", `{}`)
				if err == nil && a.status != 200 {
					err = fmt.Errorf("%d: %s", a.status, a.body)
				}
				return err
			})
		}
		l.more(t, 100)
		stored += p.runs(version)
	}
	l.end()
	for i, n := range []int{2, 4} {
		if answers[n].Load() == 0 {
			t.Errorf("no answer %dxx (%d)", n, i)
		}
	}
	t.Logf("%d calls; answers 2xx %d, 4xx %d, 5xx %d; %d calls ran after an acceptance", l.calls.Load(), answers[2].Load(), answers[4].Load(), answers[5].Load(), stored)
	for _, d := range p.doors {
		d.stop(t)
	}
	for _, w := range workers {
		w.stop(t)
	}
}
