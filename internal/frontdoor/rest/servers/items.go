package servers

import (
	"slices"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/pkg/schema"
)

// ServerItem is a server in GET /servers. Its members have the names of MCP Bridge if that has them.
type ServerItem struct {
	ID                  schema.ServerID `json:"id" doc:"The id of the server." example:"everything"`
	Connected           bool            `json:"connected" doc:"Whether at least one live worker has initialized the server."`
	PID                 int             `json:"pid" doc:"The process id of the server on the worker in the best state; 0 if it has no process." example:"4711"`
	InitializationState string          `json:"initialization_state" enum:"starting,initialized,timeout,error" doc:"The state of the server at the worker in the best state." example:"initialized"`
	RiskLevel           int             `json:"risk_level,omitempty" minimum:"1" maximum:"3" doc:"The risk level that the operator set, if any." example:"1"`
	RiskDescription     string          `json:"risk_description,omitempty" doc:"The risk level in words; absent if the operator set no level." example:"Low risk - Standard execution"`
	RunningInDocker     *bool           `json:"running_in_docker,omitempty" doc:"Whether calls run in a container, as at risk level 3; present if a risk level is set."`
	Sandbox             *ServerSandbox  `json:"sandbox,omitempty" doc:"The isolation of calls of high risk; absent if isolation is not available."`
	Transport           string          `json:"transport" enum:"stdio,http,sse,websocket,openapi,tool_endpoint,builtin,native,attach" doc:"How the worker reaches the server." example:"stdio"`
	Tools               *int            `json:"tools,omitempty" doc:"The number of tools of the server; absent until they were read." example:"12"`
	Pin                 string          `json:"pin,omitempty" enum:"warn,quarantine" doc:"What happens to a tool whose definition is not the accepted one; absent if definitions are not pinned." example:"quarantine"`
	ChangedTools        []string        `json:"changed_tools,omitempty" nullable:"false" doc:"The tools whose definition nobody has accepted; GET /servers/{id}/pins shows the changes."`
	WorkerCount         int             `json:"worker_count" doc:"The number of live workers that run the server." example:"1"`
	Workers             []ServerWorker  `json:"workers" nullable:"false" doc:"The workers that run the server."`
	Slots               int             `json:"slots" doc:"The maximum number of concurrent calls from this front door." example:"64"`
	InFlight            int             `json:"in_flight" doc:"The number of running calls from this front door."`
	Waiting             int             `json:"waiting" doc:"The number of calls that wait for a slot at this front door."`
	Title               string          `json:"title,omitempty" doc:"The server's own title."`
	Version             string          `json:"version,omitempty" doc:"The server's own version."`
	ProtocolVersion     string          `json:"protocol_version,omitempty" doc:"The MCP revision of the session." example:"2025-06-18"`
	Error               string          `json:"error,omitempty" doc:"The reason that the state is not initialized."`
	StderrTail          string          `json:"stderr_tail,omitempty" doc:"The last lines of the standard error of a failed server process."`
}

// ServerSandbox is the sandbox of high-risk calls.
type ServerSandbox struct {
	Isolation string `json:"isolation" enum:"container,bubblewrap" doc:"The kind of the sandbox." example:"container"`
	Image     string `json:"docker_image" doc:"The image that the operator configured." example:"callyard/demo:local"`
	Only      bool   `json:"only" doc:"Whether the server runs only in a container."`
	Ready     bool   `json:"ready" doc:"Whether a worker can run calls in a container now."`
	Error     string `json:"error,omitempty" doc:"The reason that it is not ready."`
}

// ServerWorker is the state of a server at one worker.
type ServerWorker struct {
	ID                  schema.WorkerID `json:"id" doc:"The id of the worker." example:"worker-1-7f3k2a"`
	InitializationState string          `json:"initialization_state" enum:"starting,initialized,timeout,error" doc:"The state of the server at this worker." example:"initialized"`
	PID                 int             `json:"pid" doc:"The process id of the server; 0 if it has no process." example:"4711"`
	Slots               int             `json:"slots" doc:"The maximum number of concurrent calls of the server at this worker." example:"64"`
	Sessions            int             `json:"sessions" doc:"The number of live MCP sessions." example:"1"`
	Restarts            int             `json:"restarts" doc:"The number of sessions that were replaced since the worker started."`
	OtherDefinitions    int             `json:"other_definitions,omitempty" doc:"The number of attached programs that wait because their definitions differ from those of the programs in use."`
	Draining            bool            `json:"draining" doc:"Whether the worker is draining: it finishes its calls and accepts no new ones."`
	Error               string          `json:"error,omitempty" doc:"The reason that the state is not initialized."`
}

func (s *serverHandlers) items(seen *catalog.Seen) []ServerItem {
	servers, loads := seen.Servers(), s.router.Load()
	items := make([]ServerItem, 0, len(servers))
	for i := range servers {
		items = append(items, loadedItem(seen, &servers[i], loads[servers[i].ID]))
	}
	return items
}

// loadedItem returns a server with its load. A caller who does not see everything may share the server
// with other tenants, and learns neither when they call it nor what it wrote about their calls.
func loadedItem(seen *catalog.Seen, of *catalog.Server, load dispatch.Load) ServerItem {
	item := item(seen, of)
	if item.Slots = load.Slots; seen.SeesEverything() {
		item.InFlight, item.Waiting, item.StderrTail = load.InFlight, load.Waiting, of.StderrTail
	}
	return item
}

func item(seen *catalog.Seen, of *catalog.Server) ServerItem {
	item := ServerItem{
		ID: of.ID, Connected: of.Connected, PID: of.PID, InitializationState: string(of.State), Transport: of.Transport,
		WorkerCount: len(of.Workers), Workers: make([]ServerWorker, 0, len(of.Workers)),
		Pin: of.PinMode, Title: of.Title, Version: of.Server.Version, ProtocolVersion: of.Protocol, Error: of.Error,
	}
	item.RiskLevel, item.RiskDescription, item.RunningInDocker = httpapi.Risk(of.Risk, of.BestSandbox)
	if b := of.BestSandbox; b != nil {
		item.Sandbox = &ServerSandbox{Isolation: b.Isolation, Image: b.Image, Only: b.Only, Ready: b.Ready, Error: b.Error}
	}
	if tools, err := seen.Tools(of.ID); err == nil {
		n := len(tools)
		item.Tools = &n
		for i := range tools {
			if tools[i].Unaccepted() {
				item.ChangedTools = append(item.ChangedTools, tools[i].Name)
			}
		}
		slices.Sort(item.ChangedTools)
	}
	for _, w := range of.Workers {
		item.Workers = append(item.Workers, ServerWorker{
			ID: w.Worker, InitializationState: string(w.Report.State), PID: w.Report.PID, Slots: w.Report.Slots,
			Sessions: w.Report.Sessions, Restarts: w.Report.Restarts, OtherDefinitions: w.Report.OtherDefinitions, Draining: w.Draining, Error: w.Report.Error,
		})
	}
	return item
}
