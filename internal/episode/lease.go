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

// leaseTime limits the time in which a worker opens or closes a lease.
const leaseTime = time.Minute

// lease binds the episode to one worker for each server. If the isolation requires it, the worker
// reserves a process of the server.
func (ep *Episode) lease(ctx context.Context) error {
	if ep.env.Isolation == IsolationShared {
		return nil
	}
	ep.leases = make(map[schema.ServerID]schema.Lease, len(ep.table.servers))
	for _, server := range ep.table.servers {
		l, err := ep.leaseOf(ctx, server)
		if err == nil || l.ID != "" { // a lease that may be open is closed by release
			ep.leases[server] = l
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bySession describes how servers of a transport keep state by session. own is true if the worker
// opens a session for each episode or binds the episode to a program. It is false if each call
// carries the episode's name. why is the reason why servers of the transport cannot keep state by
// session.
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

// acceptsClock reports whether servers of a transport receive the clock and the seed of an episode with
// isolation session.
func acceptsClock(transport string) bool {
	return transport == "builtin" || transport == "native" || transport == "attach"
}

// NoSessions returns the reason why servers of a transport cannot support the environment's settings
// with isolation session, and the remedy. It returns "" if they can.
func (e *Environment) NoSessions(transport string) string {
	_, why := bySession(transport)
	if why == "" && (e.Clock != "" || e.State.Seed) && !acceptsClock(transport) {
		why = "is reached over the network, so it cannot be told the clock or the seed; use isolation process, or remove clock and state.seed"
	}
	return why
}

// leaseOf binds the episode to a worker that has the server ready. Episodes are distributed over
// the workers by their keys. If a worker has no free process, leaseOf tries the next one. The error
// is of KindConflict for a server that does not support the environment's isolation. A lease that
// is returned with an error may be open.
func (ep *Episode) leaseOf(ctx context.Context, server schema.ServerID) (schema.Lease, error) {
	holders := slices.DeleteFunc(ep.m.o.Catalog.Holders(server), func(w schema.Worker) bool {
		return !slices.ContainsFunc(w.Servers, func(s schema.Server) bool { return s.ID == server && s.State == schema.StateInitialized })
	})
	if len(holders) == 0 {
		return schema.Lease{}, schema.Errorf(schema.KindUnavailable, "No worker has the server %q ready.", server).RetryableAfter(time.Second)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(ep.key)) // never fails
	first := int(h.Sum32() % uint32(len(holders)))
	if ep.env.Isolation == IsolationSession {
		transport := transportOf(&holders[first], server)
		own, _ := bySession(transport)
		if why := ep.env.NoSessions(transport); why != "" {
			return schema.Lease{}, schema.Errorf(schema.KindConflict, "The environment %q has isolation session, and the server %q %s.", ep.env.name, server, why)
		}
		if !own {
			return schema.Lease{Worker: ep.m.lost.avoid(holders, first, time.Now())}, nil
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

// transportOf returns the transport of a server at a worker.
func transportOf(w *schema.Worker, server schema.ServerID) string {
	for i := range w.Servers {
		if w.Servers[i].ID == server {
			return w.Servers[i].Transport
		}
	}
	return ""
}

// ask sends a lease request to the worker of the lease: open, close, digest or snapshot.
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

// release closes the leases. If a worker does not answer within [leaseTime], it closes the lease
// when it is idle.
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

// digest returns the digest of the episode's state from its worker or its state tool, or "" if it
// has no state. If the state has no digest because of the episode's actions, the result is
// [bus.UnusableState] with the reason, which equals the state of no other episode. After the
// labelled calls, that is an error, because no episode could be compared with it.
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

// unusableState reports whether a worker's answer means that the state has no digest, and returns
// the reason.
func unusableState(answer []byte) (reason string, unusable bool) {
	var text string
	if json.Unmarshal(answer, &text) != nil {
		return "", false
	}
	return strings.CutPrefix(text, bus.UnusableState)
}
