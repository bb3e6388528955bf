package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/pkg/bus"
)

func (x *examination) workers(ctx context.Context) {
	const at = "workers"
	var list callyard.WorkerList
	if !x.read(ctx, at, x.c.api.ListWorkers, &list) {
		return
	}
	versions := make(map[string]int)
	open := 0
	for i := range list.Workers {
		w := &list.Workers[i]
		versions[w.Version]++
		if !w.Draining {
			open++
		}
		if ahead := w.Started.Sub(x.clock); ahead > skewMost {
			x.fault("worker "+w.ID, "it says that it was started "+age(ahead)+" from now", "set the clock of "+w.Host+" (NTP): it refuses approved calls while it is wrong")
		}
	}
	switch {
	case len(list.Workers) == 0:
		x.fault(at, "there is none", "start one; if one runs: see that it reaches the same NATS with a user of the role worker, and its log")
	case open == 0:
		x.fault(at, fmt.Sprintf("all %d are draining", len(list.Workers)), "start another one before these end")
	default:
		x.ok(at, fmt.Sprintf("%d live, %d of them take calls", len(list.Workers), open))
	}
	if len(versions) > 1 {
		x.note(at, "they run several versions: "+strings.Join(slices.Sorted(maps.Keys(versions)), ", ")+"; that is fine for the time of an upgrade")
	}
}

func (x *examination) servers(ctx context.Context) {
	var list callyard.ServerList
	if !x.read(ctx, "servers", x.c.api.ListServers, &list) {
		return
	}
	if len(list.Servers) == 0 {
		x.note("servers", "there is none: no tool can be called")
		return
	}
	well := 0
	for i := range list.Servers {
		if x.server(&list.Servers[i]) {
			well++
		}
	}
	if well > 0 {
		x.ok("servers", fmt.Sprintf("%d of %d are well", well, len(list.Servers)))
	}
}

// server says whether nothing is wrong with a server.
func (x *examination) server(s *callyard.ServerItem) bool {
	at, faults := "server "+s.ID, x.faults()
	why, state := prefixed(": ", oneLine(deref(s.Error))), string(s.InitializationState)
	switch state {
	case "initialized":
	case "starting":
		x.note(at, "it is starting")
		return false
	case "timeout":
		x.fault(at, "it was not ready in time"+why, "run its command by hand on a worker; if it is only slow, raise startTimeout in its entry. callyard servers show "+s.ID)
	default:
		x.fault(at, "it does not run"+why, "the end of what it wrote to stderr says why: callyard servers show "+s.ID)
	}
	restarts := int64(0)
	for _, w := range s.Workers {
		restarts += w.Restarts
		if here := string(w.InitializationState); state == "initialized" && (here == "error" || here == "timeout") {
			x.fault(at, "it does not run on worker "+w.ID+prefixed(": ", oneLine(deref(w.Error))), "see what that worker lacks (program, files, variables, network); the others serve its calls")
		}
	}
	if restarts >= restartsMany {
		x.note(at, fmt.Sprintf("its sessions were replaced %d times since the workers started: it crashes, or does not answer; the log of the worker says why (session lost)", restarts))
	}
	if s.Waiting > 0 && s.InFlight >= s.Slots {
		x.note(at, fmt.Sprintf("all its %d slots are taken and %d calls wait: more sessions, a larger inFlight, or another worker", s.Slots, s.Waiting))
	}
	if s.Sandbox != nil && !s.Sandbox.Ready {
		x.fault(at, "calls of high risk cannot run: no "+string(s.Sandbox.Isolation)+" is ready"+prefixed(": ", oneLine(deref(s.Sandbox.Error))), "see that the engine of the worker runs and has the image (docs/how-to/containers.md)")
	}
	return x.faults() == faults
}

// nats looks at whom NATS lets in.
func (x *examination) nats(ctx context.Context) {
	const at = "NATS"
	found, err := bus.Exposures(ctx, cmp.Or(x.o.nats, defaultNATS))
	if err != nil {
		if x.o.nats != "" {
			x.note(at, "whom it lets in is not known: "+oneLine(err.Error()))
		}
		return
	}
	for _, e := range found {
		switch {
		case e.Credential:
			x.ok(at, e.Address+" asks for a credential")
		case e.Beyond:
			x.fault(at, e.Address+" asks for no credential and listens beyond this machine: "+bus.ExposedDanger, bus.ExposedFix)
		default:
			x.ok(at, e.Address+" asks for no credential and listens on this machine only")
		}
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// executions looks at the execution log: that it can be read, and at calls whose
// outcome nobody knows.
func (x *examination) executions(ctx context.Context) {
	const at = "execution log"
	var page callyard.CallList
	since := x.clock.Add(-24 * time.Hour).UTC().Truncate(time.Second)
	query := callyard.ListCallsParams{State: []callyard.ListCallsParamsState{callyard.ListCallsParamsStateUnknown}, Since: &since, Limit: new(shownMost)}
	if _, err := x.look(ctx, x.c, with(x.c.api.ListCalls, &query), &page); err != nil {
		x.fault(at, "it cannot be read: "+oneLine(err.Error()), "it is the stream of call records in NATS: see that JetStream runs, has room on its disk, and that the stream was not removed (a restart of a front door makes it anew)")
		return
	}
	if len(page.Calls) == 0 {
		x.ok(at, "it can be read; of no call of yours of the last day is the outcome unknown")
		return
	}
	more := ""
	if len(page.Calls) == shownMost {
		more = " at least"
	}
	x.note(at, fmt.Sprintf("of%s %d of your calls of the last day nobody knows whether they ran, such as %s: see what the tools did before they are sent again (callyard calls --state unknown --since 24h)", more, len(page.Calls), page.Calls[0].ID))
}

// approvals looks at the approver and at what waits there for people.
func (x *examination) approvals(ctx context.Context) {
	const at = "approver"
	var page struct {
		Approvals []struct {
			ID      string    `json:"id"`
			Server  string    `json:"server"`
			Tool    string    `json:"tool"`
			Created time.Time `json:"created_at"`
			Expires time.Time `json:"expires_at"`
			Blocked string    `json:"may_not_because"`
		} `json:"approvals"`
		Next string `json:"next_cursor"`
	}
	query := url.Values{"state": {"pending"}}
	waiting, late := 0, 0
	blocked, blockedID, why := 0, "", ""
	for {
		date, err := x.look(ctx, x.approver, x.approver.other(http.MethodGet, "/approvals?"+query.Encode(), nil), &page)
		if err != nil {
			x.noApprover(err)
			return
		}
		if waiting == 0 && query.Get("cursor") == "" {
			x.skew(at, date)
			x.ready(ctx, x.approver, at)
		}
		for _, a := range page.Approvals {
			waiting++
			if a.Blocked != "" {
				if blocked++; blocked == 1 {
					blockedID, why = a.ID, a.Blocked
				}
			}
			waits := date.Sub(a.Created)
			if waits <= x.o.held {
				continue
			}
			if late++; late <= shownMost {
				x.fault("approval "+a.ID, fmt.Sprintf("%s of %s waits for people since %s and expires in %s", a.Tool, a.Server, age(waits), age(a.Expires.Sub(date))),
					"decide it: callyard approvals show "+a.ID+"; if nobody was told: see approver.slack, approver.notify and who is in the groups of its rule")
			}
		}
		if page.Next == "" {
			break
		}
		query.Set("cursor", page.Next)
		page.Approvals, page.Next = nil, ""
	}
	if blocked > 0 {
		x.note("approvals", fmt.Sprintf("%d of %d that wait cannot be decided with this key, such as %s: %s", blocked, waiting, blockedID, why))
	}
	if late > shownMost {
		x.fault("approvals", fmt.Sprintf("%d more wait longer than %s", late-shownMost, age(x.o.held)), "callyard approvals lists them")
	}
	x.ok(at, fmt.Sprintf("%d approvals wait for people", waiting))
}

// noApprover is for an approver that gave no list. Without one named, there may be
// none.
func (x *examination) noApprover(err error) {
	const at = "approver"
	switch {
	case exitCode(err) == exitRefused:
		x.note(at, "it does not show approvals to this key; name one of somebody who decides, or observes, with --approver-key: "+oneLine(err.Error()))
	case x.o.named == "":
		x.note(at, "none answers at "+x.approver.base+"; --approver-url names another one")
	default:
		x.fault(at, oneLine(err.Error()), "see that it runs and that its address is right; until then nobody can decide, and what waits expires")
	}
}
