package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/pkg/schema"
)

// entryMost is the most that the definition of a server may take.
const entryMost = 256 << 10

// AddedServer is the answer to POST /servers.
type AddedServer struct {
	ID              string `json:"id" example:"files"`
	Status          string `json:"status" enum:"connected" example:"connected"`
	PID             int    `json:"pid" example:"4711"`
	RiskLevel       int    `json:"risk_level,omitempty" example:"1"`
	RiskDescription string `json:"risk_description,omitempty" example:"Low risk - Standard execution"`
	RunningInDocker *bool  `json:"running_in_docker,omitempty"`
}

// RemovedServer is the answer to DELETE /servers/{id}.
type RemovedServer struct {
	Status string `json:"status" enum:"disconnected" example:"disconnected"`
}

// RestartedServer is the answer to POST /servers/{id}/restart.
type RestartedServer struct {
	ID     string `json:"id" example:"files"`
	Status string `json:"status" enum:"restarting" example:"restarting"`
}

func (a *API) registerServers() {
	get(a, a.opListServers(), func(context.Context, *nothing) (*serverListOutput, error) {
		return &serverListOutput{Body: ServerList{Servers: a.serverItems()}}, nil
	})
	get(a, a.opGetServer(), func(_ context.Context, in *serverInput) (*serverOutput, error) {
		s, err := a.o.Catalog.Server(in.ID)
		if err != nil {
			return nil, err
		}
		item, load := a.serverItem(&s), a.o.Router.Load()[in.ID]
		item.Slots, item.InFlight, item.Waiting = load.Slots, load.InFlight, load.Waiting
		return &serverOutput{Body: item}, nil
	})
	a.raw(a.opAddServer(), "/servers", a.addServer)
	a.raw(a.opRestartServer(), "/servers/{id}/restart", a.restartServer)
	a.raw(a.opRemoveServer(), "/servers/{id}", a.removeServer)
}

// mayAdd refuses changes to the set of servers unless the operator wants them.
func (a *API) mayAdd() error {
	if a.o.AllowAddServers {
		return nil
	}
	return schema.Errorf(schema.KindForbidden, "Adding and removing servers over the API is switched off, because whoever can add a server can start any command on a worker. The operator switches it on with front_door.add_servers: true.")
}

func (a *API) addServer(x *exchange, r *http.Request) error {
	if err := a.mayAdd(); err != nil {
		return err
	}
	body, err := a.readBody(x, r, entryMost)
	if err != nil {
		return err
	}
	added, err := a.o.AddServer(r.Context(), x.principal.Name, body)
	if err != nil {
		return err
	}
	answer := AddedServer{ID: added.ID, Status: "connected", PID: added.PID}
	answer.RiskLevel, answer.RiskDescription, answer.RunningInDocker = risk(added.Risk, nil)
	a.log.Info("a server was added over the API", "server", added.ID, "by", x.principal.Name, "id", x.id)
	x.set("Location", "/servers/"+url.PathEscape(added.ID))
	x.send(http.StatusCreated, a.fixed.json, encode(answer))
	return nil
}

// addEntry reads the body as an entry of a servers file, strictly, so that a
// misspelt risk is refused here, and hands it to the catalog without its id.
func (a *API) addEntry(ctx context.Context, by string, body json.RawMessage) (catalog.Server, error) {
	none := catalog.Server{}
	members, err := object(body, entryMost, a.limits.ArgumentDepth)
	if err != nil {
		return none, err
	}
	var id string
	if err := member(members, "id", true, "a string, the id of the new server", &id); err != nil {
		return none, err
	}
	delete(members, "id")
	entry, err := json.Marshal(members)
	if err != nil {
		return none, schema.Errorf(schema.KindInvalidRequest, "The body cannot be read as a server.")
	}
	parsed, err := config.ParseServer(id, entry)
	if err != nil {
		return none, entryError(id, err)
	}
	if parsed.Risk == 3 && (parsed.Docker == nil || parsed.Docker.Image == "") {
		return none, schema.Errorf(schema.KindInvalidRequest, "High risk (riskLevel 3) runs in a container only: name its image in docker.image.")
	}
	return a.o.Catalog.AddServer(ctx, id, by, entry)
}

// entryError turns the faults of an entry into those of a request.
func entryError(id string, err error) error {
	var faults *config.Faults
	if !errors.As(err, &faults) || len(faults.List) == 0 {
		return schema.Errorf(schema.KindInvalidRequest, "The body cannot be read as the entry of a server in a servers file.")
	}
	first := faults.List[0]
	e := schema.Errorf(schema.KindInvalidRequest, "The server cannot be added: %s %s", strings.TrimPrefix(first.Path, "mcpServers."+id+"."), first.Message)
	brackets := strings.NewReplacer("[", "/", "]", "", ".", "/")
	for _, f := range faults.List {
		inside, ok := strings.CutPrefix(f.Path, "mcpServers."+id+".")
		if !ok {
			inside = ""
		} else {
			inside = "/" + brackets.Replace(inside)
		}
		e.Faults = append(e.Faults, schema.Fault{Pointer: inside, Message: f.Message})
	}
	return e
}

func (a *API) removeServer(x *exchange, r *http.Request) error {
	if err := a.mayAdd(); err != nil {
		return err
	}
	id := r.PathValue("id")
	if err := a.o.RemoveServer(r.Context(), id); err != nil {
		return err
	}
	a.log.Info("a server was removed over the API", "server", id, "by", x.principal.Name, "id", x.id)
	x.send(http.StatusOK, a.fixed.json, encode(RemovedServer{Status: "disconnected"}))
	return nil
}

func (a *API) restartServer(x *exchange, r *http.Request) error {
	id := r.PathValue("id")
	if err := a.o.Catalog.RestartServer(r.Context(), id); err != nil {
		return err
	}
	a.log.Info("a server is started again, as a caller asks", "server", id, "by", x.principal.Name, "id", x.id)
	x.send(http.StatusAccepted, a.fixed.json, encode(RestartedServer{id, "restarting"}))
	return nil
}
