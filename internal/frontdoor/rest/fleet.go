package rest

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/schema"
)

// ServerItem is a server as GET /servers shows it. The names of its members are
// those of MCP Bridge where that has them.
type ServerItem struct {
	ID                  string         `json:"id" example:"everything"`
	Connected           bool           `json:"connected" doc:"At least one live worker has the server initialized."`
	PID                 int            `json:"pid" doc:"The process id of a child on the worker in the best state; 0 where there is none." example:"4711"`
	InitializationState string         `json:"initialization_state" enum:"starting,initialized,timeout,error" example:"initialized"`
	RiskLevel           int            `json:"risk_level,omitempty" minimum:"1" maximum:"3" doc:"The risk that the operator set; absent where none is set." example:"1"`
	RiskDescription     string         `json:"risk_description,omitempty" example:"Low risk - Standard execution"`
	RunningInDocker     *bool          `json:"running_in_docker,omitempty" doc:"Present where a risk is set."`
	Box                 *ServerBox     `json:"box,omitempty" doc:"How calls of high risk run apart from everything else; absent where they cannot."`
	Transport           string         `json:"transport" enum:"stdio,http,sse,openapi,tool_endpoint" example:"stdio"`
	Tools               *int           `json:"tools,omitempty" doc:"How many tools the server offers; absent until they were read once." example:"12"`
	WorkerCount         int            `json:"worker_count" doc:"How many live workers hold the server." example:"1"`
	Workers             []ServerWorker `json:"workers" nullable:"false"`
	Slots               int            `json:"slots" doc:"How many calls this front door may have under way there at once." example:"64"`
	InFlight            int            `json:"in_flight" doc:"How many calls of this front door are under way there."`
	Waiting             int            `json:"waiting" doc:"How many calls wait here for a slot."`
	Title               string         `json:"title,omitempty" doc:"What the server calls itself."`
	Version             string         `json:"version,omitempty"`
	ProtocolVersion     string         `json:"protocol_version,omitempty" doc:"The MCP revision that the session speaks." example:"2025-06-18"`
	Error               string         `json:"error,omitempty" doc:"Why the state is not initialized."`
	StderrTail          string         `json:"stderr_tail,omitempty" doc:"The last lines that a failed child wrote."`
}

// ServerBox says how calls of high risk run.
type ServerBox struct {
	Isolation string `json:"isolation" enum:"container,bubblewrap" example:"container"`
	Image     string `json:"docker_image" doc:"The image as the operator named it." example:"callyard/demo:local"`
	Only      bool   `json:"only" doc:"The server never runs outside a container."`
	Ready     bool   `json:"ready" doc:"A worker can run calls in one now."`
	Error     string `json:"error,omitempty" doc:"Why not."`
}

// ServerWorker is one worker's word on a server.
type ServerWorker struct {
	ID                  string `json:"id" example:"worker-1-7f3k2a"`
	InitializationState string `json:"initialization_state" enum:"starting,initialized,timeout,error" example:"initialized"`
	PID                 int    `json:"pid" example:"4711"`
	Slots               int    `json:"slots" example:"64"`
	Sessions            int    `json:"sessions" doc:"Live MCP sessions." example:"1"`
	Restarts            int    `json:"restarts" doc:"Sessions that were replaced since the worker started."`
	Draining            bool   `json:"draining" doc:"The worker finishes what it has and takes nothing new."`
	Error               string `json:"error,omitempty"`
}

// WorkerItem is a worker as GET /workers shows it.
type WorkerItem struct {
	ID         string            `json:"id" example:"worker-1-7f3k2a"`
	Name       string            `json:"name" example:"worker-1"`
	Version    string            `json:"version" example:"0.1.0"`
	Host       string            `json:"host" example:"node-a"`
	PID        int               `json:"pid" example:"4700"`
	Labels     map[string]string `json:"labels,omitempty"`
	Draining   bool              `json:"draining" doc:"The worker finishes what it has and takes nothing new."`
	InFlight   int               `json:"in_flight" doc:"How many calls it runs, from all front doors."`
	Started    time.Time         `json:"started"`
	APIServers bool              `json:"api_servers" doc:"The worker takes servers that are added over the API."`
	Servers    []WorkerServer    `json:"servers" nullable:"false"`
}

// WorkerServer is one server of a worker.
type WorkerServer struct {
	ID                  string `json:"id" example:"everything"`
	InitializationState string `json:"initialization_state" enum:"starting,initialized,timeout,error" example:"initialized"`
	Transport           string `json:"transport" enum:"stdio,http,sse,openapi,tool_endpoint" example:"stdio"`
	PID                 int    `json:"pid" example:"4711"`
	Slots               int    `json:"slots" example:"64"`
	Sessions            int    `json:"sessions" example:"1"`
	Restarts            int    `json:"restarts"`
	Error               string `json:"error,omitempty"`
}

// Fleet is the data of a fleet event.
type Fleet struct {
	At      time.Time    `json:"at"`
	Servers []ServerItem `json:"servers" nullable:"false"`
	Workers []WorkerItem `json:"workers" nullable:"false"`
}

// ServerList is the answer to GET /servers.
type ServerList struct {
	Servers []ServerItem `json:"servers" nullable:"false"`
}

// WorkerList is the answer to GET /workers.
type WorkerList struct {
	Workers []WorkerItem `json:"workers" nullable:"false"`
}

type (
	nothing     struct{}
	serverInput struct {
		ID string `path:"id" doc:"The id of a server." example:"everything"`
	}
	serverListOutput struct{ Body ServerList }
	serverOutput     struct{ Body ServerItem }
	workerListOutput struct{ Body WorkerList }
)

func (a *API) registerFleet() {
	get(a, a.opListWorkers(), func(context.Context, *nothing) (*workerListOutput, error) {
		return &workerListOutput{Body: WorkerList{Workers: a.workerItems()}}, nil
	})
	a.raw(a.opEvents(), "/events", a.follow)
}

func (a *API) fleet() Fleet {
	return Fleet{At: time.Now().UTC(), Servers: a.serverItems(), Workers: a.workerItems()}
}

func (a *API) serverItems() []ServerItem {
	servers, loads := a.o.Catalog.Servers(), a.o.Router.Load()
	items := make([]ServerItem, 0, len(servers))
	for i := range servers {
		item := a.serverItem(&servers[i])
		load := loads[item.ID]
		item.Slots, item.InFlight, item.Waiting = load.Slots, load.InFlight, load.Waiting
		items = append(items, item)
	}
	return items
}

func (a *API) serverItem(s *catalog.Server) ServerItem {
	item := ServerItem{
		ID: s.ID, Connected: s.Connected, PID: s.PID, InitializationState: string(s.State), Transport: s.Transport,
		WorkerCount: len(s.Workers), Workers: make([]ServerWorker, 0, len(s.Workers)),
		Title: s.Title, Version: s.Server.Version, ProtocolVersion: s.Protocol, Error: s.Error, StderrTail: s.StderrTail,
	}
	item.RiskLevel, item.RiskDescription, item.RunningInDocker = risk(s.Risk, s.BestBox)
	if b := s.BestBox; b != nil {
		item.Box = &ServerBox{Isolation: b.Isolation, Image: b.Image, Only: b.Only, Ready: b.Ready, Error: b.Error}
	}
	if tools, err := a.o.Catalog.Tools(s.ID); err == nil {
		n := len(tools)
		item.Tools = &n
	}
	for _, w := range s.Workers {
		item.Workers = append(item.Workers, ServerWorker{
			ID: w.Worker, InitializationState: string(w.Report.State), PID: w.Report.PID, Slots: w.Report.Slots,
			Sessions: w.Report.Sessions, Restarts: w.Report.Restarts, Draining: w.Draining, Error: w.Report.Error,
		})
	}
	return item
}

// risk says a level in the words of MCP Bridge; all are empty where none is set. box
// is how calls of high risk run, nil where that is a container or not known.
func risk(level int, box *schema.Box) (int, string, *bool) {
	inDocker := level == 3 && (box == nil || box.Isolation == schema.IsolationContainer)
	switch level {
	case 1:
		return level, "Low risk - Standard execution", &inDocker
	case 2:
		return level, "Medium risk - Requires confirmation", &inDocker
	case 3:
		return level, "High risk - Docker execution required", &inDocker
	}
	return 0, "", nil
}

func (a *API) workerItems() []WorkerItem {
	workers := a.o.Catalog.Workers()
	items := make([]WorkerItem, 0, len(workers))
	for i := range workers {
		items = append(items, workerItem(&workers[i]))
	}
	return items
}

func workerItem(w *schema.Worker) WorkerItem {
	item := WorkerItem{
		ID: w.ID, Name: w.Name, Version: w.Version, Host: w.Host, PID: w.PID, Labels: w.Labels, Draining: w.Draining,
		InFlight: w.InFlight, Started: w.Started, APIServers: w.APIServers, Servers: make([]WorkerServer, 0, len(w.Servers)),
	}
	for _, s := range w.Servers {
		item.Servers = append(item.Servers, WorkerServer{
			ID: s.ID, InitializationState: string(s.State), Transport: s.Transport, PID: s.PID, Slots: s.Slots,
			Sessions: s.Sessions, Restarts: s.Restarts, Error: s.Error,
		})
	}
	return item
}
