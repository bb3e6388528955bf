package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
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
			x.fault("worker "+w.ID, "it reports a start time "+age(ahead)+" in the future", "set the clock of "+w.Host+" (NTP): it refuses approved calls until the clock is correct")
		}
	}
	switch {
	case len(list.Workers) == 0:
		x.fault(at, "there are none", "start one; if one is running, check its log, and that it connects to the same NATS with a user of the role worker")
	case open == 0:
		x.fault(at, fmt.Sprintf("all %d are draining", len(list.Workers)), "start another one before these stop")
	default:
		x.ok(at, fmt.Sprintf("%d live, %d of them accept calls", len(list.Workers), open))
	}
	if len(versions) > 1 {
		x.note(at, "they run different versions: "+strings.Join(slices.Sorted(maps.Keys(versions)), ", ")+"; this is fine during an upgrade")
	}
}

func (x *examination) servers(ctx context.Context) {
	var list callyard.ServerList
	if !x.read(ctx, "servers", x.c.api.ListServers, &list) {
		return
	}
	if len(list.Servers) == 0 {
		x.note("servers", "there are none: no tools can be called")
		return
	}
	well := 0
	for i := range list.Servers {
		if x.server(&list.Servers[i]) {
			well++
		}
	}
	if well > 0 {
		x.ok("servers", fmt.Sprintf("%d of %d are healthy", well, len(list.Servers)))
	}
}

// server checks a server and reports whether it is healthy.
func (x *examination) server(s *callyard.ServerItem) bool {
	at, faults := "server "+s.ID, x.faults()
	why, state := withReason(oneLine(deref(s.Error))), string(s.InitializationState)
	switch state {
	case "initialized":
	case "starting":
		x.note(at, "it is starting")
		return false
	case "timeout":
		x.fault(at, "it was not ready in time"+why, "run its command manually on a worker; if it is only slow, raise startTimeout in its entry. callyard servers show "+s.ID)
	default:
		x.fault(at, "it is not running"+why, "its last output on stderr has the reason: callyard servers show "+s.ID)
	}
	restarts := int64(0)
	for _, w := range s.Workers {
		restarts += w.Restarts
		if here := string(w.InitializationState); state == "initialized" && (here == "error" || here == "timeout") {
			x.fault(at, "it is not running on worker "+w.ID+withReason(oneLine(deref(w.Error))), "check what is missing on that worker (program, files, variables, network); the other workers serve its calls")
		}
	}
	if restarts >= restartsMany {
		x.note(at, fmt.Sprintf("its sessions were replaced %d times since the workers started: it crashes or does not answer; the worker's log has the reason (session lost)", restarts))
	}
	if s.Waiting > 0 && s.InFlight >= s.Slots {
		x.note(at, fmt.Sprintf("all its %d slots are in use and %d calls are waiting: add sessions, raise inFlight, or add a worker", s.Slots, s.Waiting))
	}
	if s.Sandbox != nil && !s.Sandbox.Ready {
		x.fault(at, "calls of high risk cannot run: no "+string(s.Sandbox.Isolation)+" is ready"+withReason(oneLine(deref(s.Sandbox.Error))), "check that the worker's container engine is running and has the image (docs/how-to/containers.md)")
	}
	return x.faults() == faults
}

// nats checks whether each NATS server responds, its access control, and JetStream. stores reports
// whether the front door runs, which it does only if it reaches JetStream.
func (x *examination) nats(ctx context.Context, stores bool) {
	const at = "NATS"
	found := bus.Exposures(ctx, cmp.Or(x.o.nats, defaultNATS))
	for _, e := range found {
		switch {
		case errors.Is(e.Err, bus.ErrSilent):
			x.fault(at, e.Address+" accepts connections and does not respond: its process is stopped or overloaded",
				"check its process, its machine and its disk (a stopped process continues after kill -CONT), and restart it if it stays silent")
		case e.Err != nil && x.o.nats == "": // there may be none at the default address
		case errors.Is(e.Err, syscall.ECONNREFUSED):
			x.fault(at, e.Address+" does not run: "+oneLine(e.Err.Error()), "start it; the last line of its log has the reason of its end")
		case e.Err != nil:
			x.note(at, e.Address+" cannot be checked from here: "+oneLine(e.Err.Error()))
		case e.Credential:
			x.ok(at, e.Address+" requires a credential")
		case e.Beyond:
			x.fault(at, e.Address+" requires no credential and listens beyond this machine: "+bus.ExposedDanger, bus.ExposedFix)
		default:
			x.ok(at, e.Address+" requires no credential and listens on this machine only")
		}
		x.jetStream(&e, found, stores)
	}
}

// jetStream checks whether the server stores streams. One that does not is right as a leaf node, and wrong
// if others of its cluster do: it keeps no copies.
func (x *examination) jetStream(e *bus.Exposure, all []bus.Exposure, stores bool) {
	if e.Err != nil || e.JetStream || x.o.nats == "" && (stores || !x.c.local()) { // one at the default address may be of another system
		return
	}
	const at, fix = "NATS", "start it with -js, or with the section jetstream in its configuration (deploy/nats); the first lines of its log have the reason if it has that"
	peer := slices.IndexFunc(all, func(o bus.Exposure) bool { return o.JetStream && o.Cluster == e.Cluster && e.Cluster != "" })
	switch {
	case peer >= 0:
		x.fault(at, e.Address+" has no JetStream, and "+all[peer].Address+" of the same cluster ("+e.Cluster+") has: it keeps no copies of streams, so the cluster tolerates the failure of fewer servers", fix)
	case slices.ContainsFunc(all, func(o bus.Exposure) bool { return o.JetStream }): // a leaf node
	case stores:
		x.note(at, e.Address+" has no JetStream; the front door stores through other servers, which are not checked: name them with --nats")
	default:
		x.fault(at, e.Address+" has no JetStream, and no other server that is checked has: without it, front doors and approvers do not start", fix)
	}
}

// redis checks whether the front door has a Redis that takes confirmation tokens. It is ready without
// one, because other calls run.
func (x *examination) redis(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	resp, err := x.c.do(ctx, x.c.api.GetMetrics)
	if err != nil {
		return // the other checks report a front door that does not answer
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return // the key may not read metrics
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		switch lines.Text() {
		case "callyard_redis_up 1":
			x.ok("Redis", "it takes confirmation tokens")
		case "callyard_redis_up 0":
			x.fault("Redis", "it does not take confirmation tokens: calls that their callers confirm are answered 503", "start Redis, free its memory, or check redis.url and its password; the log of the front door has the reason (Redis does not take confirmation tokens)")
		}
	}
}

// withReason returns ": " and the text, or "" if the text is empty.
func withReason(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// executions checks that the call records can be read, and lists calls with an unknown outcome: those of
// all callers, or those of the key if it may not see others.
func (x *examination) executions(ctx context.Context) {
	const at = "call records"
	var page callyard.CallList
	since := x.clock.Add(-24 * time.Hour).UTC().Truncate(time.Second)
	query := callyard.ListCallsParams{State: []callyard.ListCallsParamsState{callyard.ListCallsParamsStateUnknown}, Since: &since, Limit: new(shownMost), Principal: new("*")}
	whose, list := "the calls", "callyard calls --state unknown --since 24h --principal '*'"
	_, err := x.look(ctx, x.c, with(x.c.api.ListCalls, &query), &page)
	if exitCode(err) == exitRefused {
		query.Principal, whose, list = nil, "your calls", "callyard calls --state unknown --since 24h"
		_, err = x.look(ctx, x.c, with(x.c.api.ListCalls, &query), &page)
	}
	switch {
	case err != nil:
		x.fault(at, "they cannot be read: "+oneLine(err.Error()), "they are in the stream callyard_executions of NATS: check that JetStream is running and has disk space, and that the stream exists (a restart of a front door creates it again)")
	case len(page.Calls) == 0:
		x.ok(at, "they can be read; none of "+whose+" of the last day has an unknown outcome")
	default:
		more := ""
		if len(page.Calls) == shownMost {
			more = " at least"
		}
		x.note(at, fmt.Sprintf("the outcome of%s %d of %s of the last day is unknown, such as %s: check their effects before you send them again (%s)", more, len(page.Calls), whose, page.Calls[0].ID, list))
	}
}

// approvals checks the approver and the approvals that are pending there.
func (x *examination) approvals(ctx context.Context) {
	const at = "approver"
	if x.approver == nil {
		x.note(at, "approvals are not checked; set the address of the approver with --approver-url")
		return
	}
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
		said, err := x.look(ctx, x.approver, x.approver.other(http.MethodGet, "/approvals?"+query.Encode(), nil), &page)
		if err != nil {
			x.noApprover(err)
			return
		}
		if waiting == 0 && query.Get("cursor") == "" {
			x.skew(at, said)
			x.ready(ctx, x.approver, at)
		}
		for _, a := range page.Approvals {
			waiting++
			if a.Blocked != "" {
				if blocked++; blocked == 1 {
					blockedID, why = a.ID, a.Blocked
				}
			}
			waits := said.date.Sub(a.Created)
			if waits <= x.o.held {
				continue
			}
			if late++; late <= shownMost {
				x.fault("approval "+a.ID, fmt.Sprintf("%s of %s has been waiting for approval for %s and expires in %s", a.Tool, a.Server, age(waits), age(a.Expires.Sub(said.date))),
					"decide it: callyard approvals show "+a.ID+"; if nobody was notified, check approver.slack, approver.notify and the members of its rule's groups")
			}
		}
		if page.Next == "" {
			break
		}
		query.Set("cursor", page.Next)
		page.Approvals, page.Next = nil, ""
	}
	if blocked > 0 {
		x.note("approvals", fmt.Sprintf("%d of %d pending approvals cannot be decided with this key, such as %s: %s", blocked, waiting, blockedID, why))
	}
	if late > shownMost {
		x.fault("approvals", fmt.Sprintf("%d more have been waiting longer than %s", late-shownMost, age(x.o.held)), "callyard approvals lists them")
	}
	x.ok(at, countOf(waiting, "approval is pending", "approvals are pending"))
}

// noApprover handles an approver that returned no list. Unless one was configured, there may be
// none.
func (x *examination) noApprover(err error) {
	const at = "approver"
	switch {
	case exitCode(err) == exitRefused:
		x.note(at, "it does not show approvals to this key; pass the key of an approver or observer with --approver-key: "+oneLine(err.Error()))
	case x.o.named == "":
		x.note(at, "no approver answers at "+x.approver.base+"; set another address with --approver-url")
	default:
		x.fault(at, oneLine(err.Error()), "check that it is running and that its address is correct; until then nobody can decide, and pending calls expire")
	}
}
