package servers

import (
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
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
	Sandbox             *ServerSandbox `json:"sandbox,omitempty" doc:"How calls of high risk run apart from everything else; absent where they cannot."`
	Transport           string         `json:"transport" enum:"stdio,http,sse,openapi,tool_endpoint,builtin,native" example:"stdio"`
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

// ServerSandbox says how calls of high risk run.
type ServerSandbox struct {
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

func (s *serverHandlers) items() []ServerItem {
	servers, loads := s.catalog.Servers(), s.router.Load()
	items := make([]ServerItem, 0, len(servers))
	for i := range servers {
		item := s.item(&servers[i])
		load := loads[item.ID]
		item.Slots, item.InFlight, item.Waiting = load.Slots, load.InFlight, load.Waiting
		items = append(items, item)
	}
	return items
}

func (s *serverHandlers) item(of *catalog.Server) ServerItem {
	item := ServerItem{
		ID: of.ID, Connected: of.Connected, PID: of.PID, InitializationState: string(of.State), Transport: of.Transport,
		WorkerCount: len(of.Workers), Workers: make([]ServerWorker, 0, len(of.Workers)),
		Title: of.Title, Version: of.Server.Version, ProtocolVersion: of.Protocol, Error: of.Error, StderrTail: of.StderrTail,
	}
	item.RiskLevel, item.RiskDescription, item.RunningInDocker = httpapi.Risk(of.Risk, of.BestSandbox)
	if b := of.BestSandbox; b != nil {
		item.Sandbox = &ServerSandbox{Isolation: b.Isolation, Image: b.Image, Only: b.Only, Ready: b.Ready, Error: b.Error}
	}
	if tools, err := s.catalog.Tools(of.ID); err == nil {
		n := len(tools)
		item.Tools = &n
	}
	for _, w := range of.Workers {
		item.Workers = append(item.Workers, ServerWorker{
			ID: w.Worker, InitializationState: string(w.Report.State), PID: w.Report.PID, Slots: w.Report.Slots,
			Sessions: w.Report.Sessions, Restarts: w.Report.Restarts, Draining: w.Draining, Error: w.Report.Error,
		})
	}
	return item
}
