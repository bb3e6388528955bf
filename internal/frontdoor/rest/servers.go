package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/callyard/callyard/internal/catalog"
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
	if _, err := query(r); err != nil {
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
	answer.RiskLevel, answer.RiskDescription, answer.RunningInDocker = risk(added.Risk)
	a.log.Info("a server was added over the API", "server", added.ID, "by", x.principal.Name, "id", x.id)
	x.set("Location", "/servers/"+url.PathEscape(added.ID))
	x.send(http.StatusCreated, a.fixed.json, encode(answer))
	return nil
}

// addEntry hands the body to the catalog, as it is. Its id and the promise that
// high risk runs in a container are looked at here; the workers read the rest,
// with the code that reads a servers file.
func (a *API) addEntry(ctx context.Context, by string, body json.RawMessage) (catalog.Server, error) {
	members, err := object(body, entryMost, a.limits.ArgumentDepth, "id", "command", "args", "env", "cwd", "riskLevel", "docker", "url", "type", "transport", "headers",
		"sessions", "inFlight", "timeout", "trustAnnotations", "safeTools", "template", "values")
	if err != nil {
		return catalog.Server{}, err
	}
	var id string
	if err := member(members, "id", true, "a string, the id of the new server", &id); err != nil {
		return catalog.Server{}, err
	}
	if id == "" {
		return catalog.Server{}, schema.Errorf(schema.KindInvalidRequest, "The member id is empty; name the new server.")
	}
	var level int
	if err := member(members, "riskLevel", false, "1, 2 or 3", &level); err != nil {
		return catalog.Server{}, err
	}
	var docker struct {
		Image string `json:"image"`
	}
	if err := member(members, "docker", false, "an object with image", &docker); err != nil {
		return catalog.Server{}, err
	}
	if _, set := members["riskLevel"]; set && (level < 1 || level > 3) {
		return catalog.Server{}, schema.Errorf(schema.KindInvalidRequest, "The member riskLevel must be 1, 2 or 3.")
	}
	if level == 3 && docker.Image == "" {
		return catalog.Server{}, schema.Errorf(schema.KindInvalidRequest, "High risk (riskLevel 3) runs in a container only: name its image in docker.image.")
	}
	return a.o.Catalog.AddServer(ctx, id, by, body)
}

func (a *API) removeServer(x *exchange, r *http.Request) error {
	if err := a.mayAdd(); err != nil {
		return err
	}
	if _, err := query(r); err != nil {
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
