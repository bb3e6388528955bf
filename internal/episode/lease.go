package episode

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// leaseTime bounds how long a worker may take to open a lease, and to close one.
const leaseTime = time.Minute

// lease binds the episode to one worker for each server, and has it keep a process of each
// server where the isolation asks for that.
func (ep *Episode) lease(ctx context.Context) error {
	if ep.env.Isolation == IsolationShared {
		return nil
	}
	ep.leases = make(map[schema.ServerID]schema.Lease, len(ep.table.servers))
	for _, server := range ep.table.servers {
		l, err := ep.leaseOf(ctx, server)
		if err == nil || l.ID != "" { // one that may be open is closed by release
			ep.leases[server] = l
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bySession says how servers of a transport keep state by session: own is true for those where
// the worker opens a session for each episode or binds it to a program, false for those that are told the episode's name
// with each call. why says why those of a transport cannot.
func bySession(transport string) (own bool, why string) {
	switch transport {
	case "builtin", "native":
		return false, ""
	case "http", "sse", "websocket", "attach":
		return true, ""
	case "stdio":
		return false, "is one process, whose state all its callers share; use isolation process"
	}
	return false, "keeps no state by session; use isolation shared"
}

// hears says whether servers of a transport are told the clock and the seed of an episode with
// isolation session.
func hears(transport string) bool {
	return transport == "builtin" || transport == "native" || transport == "attach"
}

// NoSessions says why servers of a transport cannot give an episode what the environment has with
// isolation session, and what to do; "" for those that may.
func (e *Environment) NoSessions(transport string) string {
	_, why := bySession(transport)
	if why == "" && (e.Clock != "" || e.State.Seed) && !hears(transport) {
		why = "is reached over the network, so it cannot be told the clock or the seed; use isolation process, or remove clock and state.seed"
	}
	return why
}

// leaseOf binds the episode to a worker that has the server ready. Episodes are spread over
// the workers by their keys; a worker without a free process passes the episode on. The error
// is of KindConflict for a server that cannot give the episode what its isolation promises.
// A lease that is returned with an error may be open.
func (ep *Episode) leaseOf(ctx context.Context, server schema.ServerID) (schema.Lease, error) {
	holders := slices.DeleteFunc(ep.m.o.Catalog.Holders(server), func(w schema.Worker) bool {
		return !slices.ContainsFunc(w.Servers, func(s schema.Server) bool { return s.ID == server && s.State == schema.StateInitialized })
	})
	if len(holders) == 0 {
		return schema.Lease{}, schema.Errorf(schema.KindUnavailable, "No worker has the server %q ready.", server).RetryableAfter(time.Second)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(ep.key)) // it never fails
	first := int(h.Sum32() % uint32(len(holders)))
	if ep.env.Isolation == IsolationSession {
		transport := transportOf(&holders[first], server)
		own, _ := bySession(transport)
		if why := ep.env.NoSessions(transport); why != "" {
			return schema.Lease{}, schema.Errorf(schema.KindConflict, "The environment %q has isolation session, and the server %q %s.", ep.env.name, server, why)
		}
		if !own {
			return schema.Lease{Worker: holders[first].ID}, nil
		}
	}
	if at := ep.from.worker(server); at != "" {
		l := schema.Lease{Worker: at, ID: ep.key}
		_, err := ep.ask(ctx, bus.MethodOpenLease, server, l)
		return l, err
	}
	var err error
	for i := range holders {
		l := schema.Lease{Worker: holders[(first+i)%len(holders)].ID, ID: ep.key}
		if _, err = ep.ask(ctx, bus.MethodOpenLease, server, l); err == nil || ctx.Err() != nil || schema.KindOf(err) == schema.KindOutcomeUnknown {
			return l, err
		}
	}
	return schema.Lease{}, err
}

// transportOf is the transport of a server at a worker.
func transportOf(w *schema.Worker, server schema.ServerID) string {
	for i := range w.Servers {
		if w.Servers[i].ID == server {
			return w.Servers[i].Transport
		}
	}
	return ""
}

// ask asks the worker of a lease to open or close it, or for the digest of its state.
func (ep *Episode) ask(ctx context.Context, method string, server schema.ServerID, l schema.Lease) ([]byte, error) {
	q := bus.LeaseRequest{ID: l.ID}
	if method == bus.MethodOpenLease {
		q.Seed, q.Snapshot = ep.seed, ep.from.digest(server)
	}
	payload, err := json.Marshal(&q)
	if err != nil {
		return nil, err
	}
	return ep.m.o.Workers.Request(ctx, l.Worker, method, server, payload, leaseTime)
}

// release ends the leases. A worker that does not answer within [leaseTime] ends its own.
func (ep *Episode) release() {
	for server, l := range ep.leases {
		if l.ID == "" {
			continue
		}
		if _, err := ep.ask(context.Background(), bus.MethodCloseLease, server, l); err != nil {
			ep.m.o.Log.Warn("a lease was not closed; its worker closes it when it is idle", "server", server, "worker", l.Worker, "error", err)
		}
	}
}

// digest is the state of the episode as its worker or its state tool says, "" where it has
// none. A state that has no digest because of what the episode did is
// [bus.UnusableState] with the reason, which equals the state of no other episode; after the
// labelled calls it is an error, because no episode could be compared with it.
func (ep *Episode) digest(ctx context.Context) (string, error) {
	if tool := ep.env.State.Tool; tool != "" {
		res, err := ep.own(ctx, tool, ep.env.State.Arguments)
		if err != nil {
			return "", err
		}
		return schema.Digest(res.Body), nil
	}
	whole := ""
	for _, server := range ep.table.servers {
		l := ep.leases[server]
		if l.ID == "" {
			continue
		}
		sum, err := ep.ask(ctx, bus.MethodLeaseDigest, server, l)
		if err != nil {
			return "", err
		}
		if reason, unusable := unusableState(sum); unusable {
			if ep.oracle {
				return "", errors.New(reason)
			}
			return bus.UnusableState + reason, nil
		}
		whole += string(server) + " " + string(sum) + "\n"
	}
	if whole == "" {
		return "", nil
	}
	return schema.Digest([]byte(whole)), nil
}

// unusableState says whether the answer about a state is that it has no digest, and why.
func unusableState(answer []byte) (reason string, unusable bool) {
	var text string
	if json.Unmarshal(answer, &text) != nil {
		return "", false
	}
	return strings.CutPrefix(text, bus.UnusableState)
}
