package worker

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/attach"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// defaultPrograms is the default limit of programs attached to a server.
const defaultPrograms = 100

// attached configures a server for attached programs, if e is one.
func attached(c *settings.Worker, e *config.ServerEntry, s *Served) error {
	if e.Attach == nil {
		return nil
	}
	s.Session.Attached = true
	if e.Sessions == 0 {
		s.Session.Sessions = defaultPrograms
	}
	if c.Attach.Listen == "" {
		return schema.Errorf(schema.KindInvalidRequest, "Server %q is for attached programs, but this worker does not listen for them: set worker.attach.listen.", e.ID)
	}
	return nil
}

// attachKeys returns the keys of all servers for attached programs. The owner of a key is the one
// server that it is valid for.
func attachKeys(servers []Served) []authn.Key {
	var keys []authn.Key
	for i := range servers {
		if e := &servers[i].Entry; e.Attach != nil {
			for _, hash := range e.Attach.Keys {
				keys = append(keys, authn.Key{Name: hash, Owner: e.ID, Hash: hash})
			}
		}
	}
	return keys
}

// checkAttachKeys returns the faults of the keys of servers for attached programs. A key is valid
// for one server only.
func checkAttachKeys(servers []Served) error {
	var faults []error
	owner := make(map[string]string)
	for _, key := range attachKeys(servers) {
		if other, twice := owner[key.Hash]; twice {
			faults = append(faults, fmt.Errorf("server %q: attach_keys has a hash that server %q has too; create a separate key for each server", key.Owner, other))
			continue
		}
		owner[key.Hash] = key.Owner
		for _, f := range authn.CheckKeys([]authn.Key{{Name: "key", Hash: key.Hash}}) {
			faults = append(faults, fmt.Errorf("server %q: an item of attach_keys %s", key.Owner, f.Message))
		}
	}
	return errors.Join(faults...)
}

// attachable accepts programs that attach to the worker's servers, and holds their keys.
type attachable struct {
	w    *Worker
	keys *authn.Keys
}

// replace applies the keys of the servers. Programs whose key was removed are detached once their
// calls have ended.
func (a *attachable) replace(servers []Served) {
	if err := a.keys.Replace(attachKeys(servers)); err != nil {
		a.w.log.Error("valid keys of attached programs cannot be applied", "error", err) // Serve has checked them
		return
	}
	a.w.mu.RLock()
	all := slices.Collect(maps.Values(a.w.servers.held))
	a.w.mu.RUnlock()
	for _, h := range all {
		if h.pool != nil {
			h.pool.Expel(func(p attach.Program) bool { _, ok := a.keys.Find(p.Key); return ok })
		}
	}
}

// AttachHandler returns the handler of GET /attach/{server}. A program with a key of the server
// serves it over the WebSocket connection to which the request is upgraded. Errors are problem
// documents: 400, 401, 403 for the key of another server, 404, 429 after many wrong keys, and 503
// if the server takes no more programs.
func (w *Worker) AttachHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /attach/{server}", func(out http.ResponseWriter, r *http.Request) {
		if err := w.attachable.serve(out, r); err != nil {
			problem.Write(out, err)
		}
	})
	mux.HandleFunc("/", func(out http.ResponseWriter, _ *http.Request) {
		problem.Write(out, schema.Errorf(schema.KindNotFound, "This path does not exist; programs attach with GET /attach/{server}."))
	})
	return mux
}

// serve serves one program until it disconnects. It returns only errors from before the upgrade.
func (a *attachable) serve(out http.ResponseWriter, r *http.Request) error {
	w, id := a.w, schema.ServerID(r.PathValue("server"))
	if !a.keys.Configured() {
		return schema.Errorf(schema.KindNotFound, "Worker %s has no server for attached programs.", w.id)
	}
	who, err := a.keys.Authenticate(r)
	if schema.KindOf(err) == schema.KindUnauthenticated {
		return schema.Errorf(schema.KindUnauthenticated, "The request has no valid key. Send one whose hash is in attach_keys of the server, as Authorization: Bearer KEY.")
	}
	if err != nil {
		return err
	}
	w.mu.RLock()
	h, draining := w.servers.held[id], w.draining
	w.mu.RUnlock()
	switch {
	case h == nil || h.pool == nil || h.served.Entry.Attach == nil:
		return schema.Errorf(schema.KindNotFound, "Worker %s has no server %q for attached programs.", w.id, id)
	case schema.ServerID(who.Owner) != id:
		return schema.Errorf(schema.KindForbidden, "The key is not for server %q; each key attaches programs to one server.", id)
	case draining:
		return schema.Errorf(schema.KindUnavailable, "Worker %s is shutting down.", w.id)
	}
	program, err := attach.ReadProgram(r.Header)
	if err != nil {
		return err
	}
	program.Key = who.Name
	return h.pool.Attach(program, func(maxMessage int) (*attach.Conn, error) {
		return attach.Accept(out, r, attach.Options{MaxMessage: maxMessage})
	})
}
