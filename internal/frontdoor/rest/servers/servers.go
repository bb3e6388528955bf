package servers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/schema"
)

// maxEntryBytes is the maximum size of the definition of a server in bytes.
const maxEntryBytes = 256 << 10

// AddedServer is the answer to POST /servers.
type AddedServer struct {
	ID              schema.ServerID `json:"id" doc:"The id of the server." example:"files"`
	Status          string          `json:"status" enum:"connected" doc:"Always connected." example:"connected"`
	PID             int             `json:"pid" doc:"The process id of the server; 0 if it has no process." example:"4711"`
	RiskLevel       int             `json:"risk_level,omitempty" doc:"The risk level of the entry, if it has one." example:"1"`
	RiskDescription string          `json:"risk_description,omitempty" doc:"The risk level in words; absent if the entry has none." example:"Low risk - Standard execution"`
	RunningInDocker *bool           `json:"running_in_docker,omitempty" doc:"Whether calls run in a container, as at risk level 3; present if the entry has a risk level."`
}

// RemovedServer is the answer to DELETE /servers/{id}.
type RemovedServer struct {
	Status string `json:"status" enum:"disconnected" doc:"Always disconnected." example:"disconnected"`
}

// RestartedServer is the answer to POST /servers/{id}/restart.
type RestartedServer struct {
	ID     schema.ServerID `json:"id" doc:"The id of the server." example:"files"`
	Status string          `json:"status" enum:"restarting" doc:"Always restarting." example:"restarting"`
}

// Options are the dependencies and settings of the operations on servers. Catalog, Router, Runner
// and Log are required.
type Options struct {
	Catalog *catalog.Catalog
	Router  *dispatch.Router
	Runner  *submit.Runner
	Limits  calls.Limits
	Log     *slog.Logger
	// MayChange enables POST and DELETE /servers.
	MayChange bool
	// Add adds the server that body describes for the principal by and waits for its start. If nil,
	// Catalog.Operator accepts the body as the entry.
	Add func(ctx context.Context, by string, body json.RawMessage) (catalog.Server, error)
	// Remove removes a server that was added. If nil, Catalog.Operator does.
	Remove func(ctx context.Context, id schema.ServerID) error
	// AcceptGroups are the groups whose members can accept tool definitions. If empty, every caller
	// can. Accepted writes to the audit record which principal accepted definitions.
	AcceptGroups []string
	Accepted     func(ctx context.Context, by schema.Principal, server schema.ServerID, accepted []catalog.Acceptance) error
	// Draining reports whether the front door is shutting down. Event streams then end.
	Draining func() bool
	// Heartbeat is the interval at which a comment is sent on an idle event stream.
	Heartbeat time.Duration
}

// Register registers the operations on servers, workers and events. It returns the handler that
// reads a resource whose URI is in the path without percent-encoding.
func Register(d *httpapi.Document, o Options) (readUnclean httpapi.Handler) {
	servers := newServerHandlers(&o)
	servers.register(d)
	(&pinHandlers{catalog: o.Catalog, groups: o.AcceptGroups, record: o.Accepted, depth: o.Limits.ArgumentDepth}).register(d)
	readUnclean = (&resourceHandlers{runner: o.Runner, catalog: o.Catalog, limits: o.Limits}).register(d)
	(&typedHandlers{catalog: o.Catalog}).register(d)
	(&fleetHandlers{catalog: o.Catalog, servers: servers, draining: o.Draining, heartbeat: o.Heartbeat}).register(d)
	return readUnclean
}

// serverInput is the path of an operation on one server.
type serverInput struct {
	ID schema.ServerID `path:"id" doc:"The id of a server." example:"everything"`
}

// serverHandlers are the operations on servers.
type serverHandlers struct {
	catalog      *catalog.Catalog
	router       *dispatch.Router
	log          *slog.Logger
	mayChange    bool // the set of servers may be changed
	depth        int  // maximum nesting of a server's entry
	addServer    func(ctx context.Context, by string, body json.RawMessage) (catalog.Server, error)
	removeServer func(ctx context.Context, id schema.ServerID) error
	naming       naming
}

func newServerHandlers(o *Options) *serverHandlers {
	s := &serverHandlers{
		catalog: o.Catalog, router: o.Router, log: o.Log, mayChange: o.MayChange, depth: o.Limits.ArgumentDepth, addServer: o.Add, removeServer: o.Remove,
	}
	if s.addServer == nil {
		s.addServer = s.addEntry
	}
	if s.removeServer == nil {
		s.removeServer = o.Catalog.Operator().Remove
	}
	return s
}

func (s *serverHandlers) register(d *httpapi.Document) {
	s.describe(d)
	httpapi.Get(d, openapi.Answers(opListServers(), "The servers that you may see.", map[string]any{"servers": []any{exampleServer()}}), func(ctx context.Context, _ *httpapi.NoInput) (ServerList, error) {
		return ServerList{s.items(httpapi.Of(ctx).Operated(s.catalog))}, nil
	})
	httpapi.Get(d, openapi.Answers(opGetServer(), "The server.", exampleServer()), func(ctx context.Context, in *serverInput) (*ServerItem, error) {
		seen := httpapi.Of(ctx).Operated(s.catalog)
		of, err := seen.Server(in.ID)
		if err != nil {
			return nil, err
		}
		item := loadedItem(seen, &of, s.router.Load()[in.ID])
		return &item, nil
	})
	httpapi.HandleValue(d, opAddServer(), "The server is connected.", map[string]any{
		"id": "files", "status": "connected", "pid": 4711, "risk_level": 1, "risk_description": "Low risk - Standard execution", "running_in_docker": false,
	}, s.add)
	httpapi.Get(d, openapi.Answers(opRestartServer(), "The restarts have begun.", map[string]any{"id": "files", "status": "restarting"}), s.restart)
	httpapi.Get(d, openapi.Answers(opRemoveServer(), "The server was removed.", map[string]any{"status": "disconnected"}), s.remove)
}

// mayAdd returns an error unless the operator allows changes to the set of servers.
func (s *serverHandlers) mayAdd() error {
	if s.mayChange {
		return nil
	}
	return schema.Errorf(schema.KindForbidden, "Adding and removing servers over the API is disabled, because a caller that can add a server can start any command on a worker. The operator enables it with front_door.add_servers: true.")
}

func (s *serverHandlers) add(x *httpapi.Exchange, r *http.Request) (answer AddedServer, err error) {
	if err := s.mayAdd(); err != nil {
		return answer, err
	}
	body, err := x.ReadBody(r, maxEntryBytes)
	if err != nil {
		return answer, err
	}
	added, err := s.addServer(r.Context(), x.Principal.Name, body)
	if err != nil {
		return answer, err
	}
	answer = AddedServer{ID: added.ID, Status: "connected", PID: added.PID}
	answer.RiskLevel, answer.RiskDescription, answer.RunningInDocker = httpapi.Risk(added.Risk, nil)
	s.log.Info("a server was added over the API", "server", added.ID, "by", x.Principal.Name, "id", x.ID)
	x.Set("Location", "/servers/"+url.PathEscape(string(added.ID)))
	return answer, nil
}

// addEntry parses the body strictly as an entry of a servers file, so that a misspelled risk is
// refused here, and passes it to the catalog without its ID.
func (s *serverHandlers) addEntry(ctx context.Context, by string, body json.RawMessage) (catalog.Server, error) {
	none := catalog.Server{}
	members, err := httpapi.ReadObject(body, maxEntryBytes, s.depth)
	if err != nil {
		return none, err
	}
	var id schema.ServerID
	if err := httpapi.ReadMember(members, "id", false, "a string, the id of the new server", &id); err != nil {
		return none, err
	}
	_, given := members["id"]
	delete(members, "id")
	entry, err := json.Marshal(members)
	if err != nil {
		return none, schema.Errorf(schema.KindInvalidRequest, "The body is not a valid server.")
	}
	if !given {
		id = "server" // placeholder until the entry is parsed
	}
	parsed, err := config.ParseServer(string(id), entry)
	if err != nil {
		return none, entryError(id, err)
	}
	if parsed.Risk == 3 && (parsed.Docker == nil || parsed.Docker.Image == "") {
		return none, schema.Errorf(schema.KindInvalidRequest, "A server with high risk (riskLevel 3) runs only in a container: set its image in docker.image.")
	}
	if !given {
		var done func()
		if id, done, err = s.naming.reserve(s.catalog, config.SuggestedID(parsed), entry); err != nil {
			return none, err
		}
		defer done()
	}
	return s.catalog.Operator().Add(ctx, id, by, entry)
}

// entryError converts the faults of an entry into an error of the request.
func entryError(id schema.ServerID, err error) error {
	var faults *config.Faults
	if !errors.As(err, &faults) || len(faults.List) == 0 {
		return schema.Errorf(schema.KindInvalidRequest, "The body is not a valid server entry of a servers file.")
	}
	first := faults.List[0]
	e := schema.Errorf(schema.KindInvalidRequest, "The server cannot be added: %s %s", strings.TrimPrefix(first.Path, "mcpServers."+string(id)+"."), first.Message)
	for _, f := range faults.List {
		pointer := "" // the whole entry
		if inside, ok := strings.CutPrefix(f.Path, "mcpServers."+string(id)+"."); ok {
			pointer = httpapi.PathPointer(inside)
		}
		e.Faults = append(e.Faults, schema.Fault{Pointer: pointer, Message: f.Message})
	}
	return e
}

func (s *serverHandlers) remove(ctx context.Context, in *serverInput) (none RemovedServer, err error) {
	if err := s.mayAdd(); err != nil {
		return none, err
	}
	if err := s.removeServer(ctx, in.ID); err != nil {
		return none, err
	}
	x := httpapi.Of(ctx)
	s.log.Info("a server was removed over the API", "server", in.ID, "by", x.Principal.Name, "id", x.ID)
	return RemovedServer{Status: "disconnected"}, nil
}

func (s *serverHandlers) restart(ctx context.Context, in *serverInput) (none RestartedServer, err error) {
	if err := s.catalog.Operator().Restart(ctx, in.ID); err != nil {
		return none, err
	}
	x := httpapi.Of(ctx)
	s.log.Info("a caller restarts a server", "server", in.ID, "by", x.Principal.Name, "id", x.ID)
	return RestartedServer{in.ID, "restarting"}, nil
}
