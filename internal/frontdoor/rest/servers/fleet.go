package servers

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/pkg/schema"
)

// WorkerItem is a worker in GET /workers.
type WorkerItem struct {
	ID         schema.WorkerID   `json:"id" doc:"The id of the process, which is new after each start." example:"worker-1-7f3k2a"`
	Name       string            `json:"name" doc:"The configured name of the worker." example:"worker-1"`
	Version    string            `json:"version" doc:"The version of the worker." example:"0.1.0"`
	Host       string            `json:"host" doc:"The name of the machine or container." example:"node-a"`
	PID        int               `json:"pid" doc:"The process id of the worker." example:"4700"`
	Labels     map[string]string `json:"labels,omitempty" doc:"The configured labels of the worker."`
	Draining   bool              `json:"draining" doc:"Whether the worker is draining: it finishes its calls and accepts no new ones."`
	InFlight   int               `json:"in_flight" doc:"The number of its running calls, from all front doors."`
	Started    time.Time         `json:"started" doc:"When the process started."`
	APIServers bool              `json:"api_servers" doc:"Whether the worker runs servers that are added over the API."`
	Servers    []WorkerServer    `json:"servers" nullable:"false" doc:"The servers that the worker runs."`
}

// WorkerServer is one server of a worker.
type WorkerServer struct {
	ID                  schema.ServerID `json:"id" doc:"The id of the server." example:"everything"`
	InitializationState string          `json:"initialization_state" enum:"starting,initialized,timeout,error" doc:"The state of the server at this worker." example:"initialized"`
	Transport           string          `json:"transport" enum:"stdio,http,sse,websocket,openapi,tool_endpoint,builtin,native,attach" doc:"How the worker reaches the server." example:"stdio"`
	PID                 int             `json:"pid" doc:"The process id of the server; 0 if it has no process." example:"4711"`
	Slots               int             `json:"slots" doc:"The maximum number of concurrent calls of the server at this worker." example:"64"`
	Sessions            int             `json:"sessions" doc:"The number of live MCP sessions." example:"1"`
	Restarts            int             `json:"restarts" doc:"The number of sessions that were replaced since the worker started."`
	OtherDefinitions    int             `json:"other_definitions,omitempty" doc:"The number of attached programs that wait because their definitions differ from those of the programs in use."`
	Error               string          `json:"error,omitempty" doc:"The reason that the state is not initialized."`
}

// Fleet is the data of a fleet event.
type Fleet struct {
	At      time.Time    `json:"at" doc:"The time of this view."`
	Servers []ServerItem `json:"servers" nullable:"false" doc:"Every server, as in GET /servers."`
	Workers []WorkerItem `json:"workers" nullable:"false" doc:"Every live worker, as in GET /workers."`
}

// FleetChange is the data of a change event.
type FleetChange struct {
	Type   string          `json:"type" enum:"tool.added,tool.removed,tool.changed,tool.enabled,tool.disabled,server.added,server.removed,server.online,server.offline,set.added,set.removed,set.changed" doc:"The kind of the change." example:"tool.disabled"`
	At     time.Time       `json:"at" doc:"The time of the change."`
	Server schema.ServerID `json:"server,omitempty" doc:"The server, for the types that begin with tool or server." example:"files"`
	Tool   string          `json:"tool,omitempty" doc:"The tool, for the types that begin with tool." example:"delete"`
	Set    string          `json:"set,omitempty" doc:"The set of tools, for the types that begin with set."`
	Tenant schema.TenantID `json:"tenant,omitempty" doc:"The tenant that owns the set; default for one of the installation." example:"default"`
	Actor  string          `json:"actor,omitempty" doc:"Who enabled, disabled or stored it." example:"ops"`
	Reason string          `json:"reason,omitempty" doc:"The reason that it is disabled or offline." example:"Read-only until Monday."`
}

// ServerList is the answer to GET /servers.
type ServerList struct {
	Servers []ServerItem `json:"servers" nullable:"false" doc:"Every server of the fleet that the caller may see."`
}

// WorkerList is the answer to GET /workers.
type WorkerList struct {
	Workers []WorkerItem `json:"workers" nullable:"false" doc:"Every live worker."`
}

// DrainingWorker is the answer to POST /workers/{id}/drain.
type DrainingWorker struct {
	ID     schema.WorkerID `json:"id" doc:"The id of the worker."`
	Status string          `json:"status" enum:"draining" doc:"Always draining." example:"draining"`
}

// fleetHandlers are the operations on the fleet as a whole: workers and events.
type fleetHandlers struct {
	catalog   *catalog.Catalog
	servers   *serverHandlers
	draining  func() bool
	heartbeat time.Duration
	snapshots snapshots // the encoded fleet for event streams
}

func (f *fleetHandlers) register(d *httpapi.Document) {
	httpapi.Get(d, openapi.Answers(opListWorkers(), "The workers.", exampleWorkers()), func(ctx context.Context, _ *httpapi.NoInput) (WorkerList, error) {
		return WorkerList{f.workerItems(httpapi.Of(ctx).Operated(f.catalog))}, nil
	})
	httpapi.Get(d, openapi.Answers(opDrainWorker(), "Draining has begun.", map[string]any{"id": "worker-1-7f3k2a", "status": "draining"}), f.drain)
	d.Handle(f.opEvents(d), f.follow)
}

// workerInput is the path of an operation on one worker.
type workerInput struct {
	ID schema.WorkerID `path:"id" doc:"The id of a worker." example:"worker-1-7f3k2a"`
}

// drain serves POST /workers/{id}/drain.
func (f *fleetHandlers) drain(ctx context.Context, in *workerInput) (none DrainingWorker, err error) {
	if err := f.catalog.Operator().Drain(ctx, in.ID); err != nil {
		return none, err
	}
	x := httpapi.Of(ctx)
	f.servers.log.Info("a caller drains a worker", "worker", in.ID, "by", x.Principal.Name, "id", x.ID)
	return DrainingWorker{in.ID, "draining"}, nil
}

func (f *fleetHandlers) fleet(seen *catalog.Seen) Fleet {
	return Fleet{At: time.Now().UTC(), Servers: f.servers.items(seen), Workers: f.workerItems(seen)}
}

// workerItems returns the workers with the visible servers. A caller from whom servers are hidden
// sees no worker without visible servers, and not the total number of calls in flight.
func (f *fleetHandlers) workerItems(seen *catalog.Seen) []WorkerItem {
	workers := f.catalog.Workers()
	items := make([]WorkerItem, 0, len(workers))
	for i := range workers {
		item := workerItem(seen, &workers[i])
		if !seen.SeesEverything() {
			if len(item.Servers) == 0 {
				continue
			}
			item.InFlight = 0
		}
		items = append(items, item)
	}
	return items
}

func workerItem(seen *catalog.Seen, w *schema.Worker) WorkerItem {
	item := WorkerItem{
		ID: w.ID, Name: w.Name, Version: w.Version, Host: w.Host, PID: w.PID, Labels: w.Labels, Draining: w.Draining,
		InFlight: w.InFlight, Started: w.Started, APIServers: w.APIServers, Servers: make([]WorkerServer, 0, len(w.Servers)),
	}
	for _, s := range w.Servers {
		if !seen.Has(s.ID) {
			continue
		}
		item.Servers = append(item.Servers, WorkerServer{
			ID: s.ID, InitializationState: string(s.State), Transport: s.Transport, PID: s.PID, Slots: s.Slots,
			Sessions: s.Sessions, Restarts: s.Restarts, OtherDefinitions: s.OtherDefinitions, Error: s.Error,
		})
	}
	return item
}

// follow serves GET /events: the current fleet, then the fleet after each change.
func (f *fleetHandlers) follow(x *httpapi.Exchange, r *http.Request) error {
	n := 0
	tell := func(*sse.Writer) error { return nil }
	return httpapi.EventStream{Heartbeat: f.heartbeat, Draining: f.draining, Changes: f.catalog.Changes, Tell: func(out *sse.Writer, why httpapi.TellReason) (bool, error) {
		since := time.Now()
		switch why {
		case httpapi.Looked:
			return true, nil
		case httpapi.First:
			if x.Query.Get("include") == "changes" {
				tell = f.changes(x)
			}
		case httpapi.Changed:
			if !settle(r.Context()) {
				return false, nil
			}
		}
		n++
		return true, errors.Join(tell(out), out.Event("fleet", strconv.Itoa(n), f.picture(x, since)))
	}}.Follow(x, r)
}

// picture returns the encoded fleet as visible to the caller at some time after since.
func (f *fleetHandlers) picture(x *httpapi.Exchange, since time.Time) []byte {
	_, key := x.Operated(f.catalog).State()
	return f.snapshots.of(key).get(since, func() Fleet { return f.fleet(x.Operated(f.catalog)) })
}

// changes returns a function that sends the changes since its last call.
func (f *fleetHandlers) changes(x *httpapi.Exchange) func(out *sse.Writer) error {
	follower := f.catalog.Follow()
	return func(out *sse.Writer) (err error) {
		seen := x.Operated(f.catalog)
		for _, c := range follower.Next() {
			if !seen.Changed(&c) {
				continue
			}
			data := httpapi.EncodeInline(FleetChange{Type: string(c.Type), At: c.At, Server: c.Server, Tool: c.Tool, Set: c.Set, Tenant: c.Tenant, Actor: c.Actor, Reason: c.Reason})
			err = errors.Join(err, out.Event("change", "", data))
		}
		return err
	}
}
