package servers

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

// schemaEntry is the name of the schema of the entry of a server.
const schemaEntry = "ServerEntry"

// describe adds the schema of an entry to the document, because the entry is parsed member by
// member.
func (s *serverHandlers) describe(d *httpapi.Document) {
	d.Schemas()[schemaEntry] = openapi.OpenObject("A server: its id and its entry as in a servers file.", map[string]*huma.Schema{
		"id": openapi.Text("The id of the new server. Without it, the server is named after its package, program or host; a number is added if the name is taken."), "command": openapi.Text("The command of a stdio server."),
		"args":      {Type: huma.TypeArray, Items: openapi.String(), Description: "The arguments of the command."},
		"env":       {Type: huma.TypeObject, AdditionalProperties: openapi.String(), Description: "Environment variables of the command."},
		"url":       openapi.Text("The URL of a remote server."),
		"type":      openapi.Described(openapi.Words("stdio", "http", "sse", "websocket"), "The transport. Without it: stdio for a command; for a URL, websocket if it begins with ws: or wss:, sse if it ends in /sse, otherwise http."),
		"headers":   {Type: huma.TypeObject, AdditionalProperties: openapi.String(), Description: "Headers of each request to a remote server."},
		"riskLevel": {Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(3.0), Description: "1 low, 2 medium, 3 high."},
		"apiKey":    openapi.Text("The API key of a remote server, sent as Authorization: Bearer."),
		"pin":       openapi.Described(openapi.Words("off", "warn", "quarantine"), "What happens to a tool whose definition is not the accepted one; the default is off."),
		"docker":    openapi.OpenObject("The container of a high-risk server.", map[string]*huma.Schema{"image": openapi.Text("The image; required at riskLevel 3."), "network": openapi.Text("The network."), "volumes": {Type: huma.TypeArray, Items: openapi.String(), Description: "The mounts, each as HOST:CONTAINER:ro."}}),
	})
}

func exampleServer() map[string]any {
	return map[string]any{
		"id": "everything", "connected": true, "initialization_state": "initialized", "pid": 4711, "risk_level": 1, "risk_description": "Low risk - Standard execution", "running_in_docker": false,
		"transport": "stdio", "tools": 12, "worker_count": 1, "slots": 64, "in_flight": 0, "waiting": 0, "protocol_version": "2025-06-18",
		"workers": []any{map[string]any{"id": "worker-1-7f3k2a", "initialization_state": "initialized", "pid": 4711, "slots": 64, "sessions": 1, "restarts": 0, "draining": false}},
	}
}

func exampleWorkers() map[string]any {
	return map[string]any{"workers": []any{map[string]any{
		"id": "worker-1-7f3k2a", "name": "worker-1", "version": "0.1.0", "host": "node-a", "pid": 4700, "draining": false, "in_flight": 0, "started": "2026-01-02T03:04:05Z", "api_servers": true,
		"servers": []any{map[string]any{"id": "everything", "initialization_state": "initialized", "transport": "stdio", "pid": 4711, "slots": 64, "sessions": 1, "restarts": 0}},
	}}}
}

func opListServers() huma.Operation {
	return openapi.Operation(http.MethodGet, "/servers", "list-servers", openapi.TagServers, "List the servers", "All servers that live workers run, sorted by id.")
}

func opGetServer() huma.Operation {
	return openapi.Operation(http.MethodGet, "/servers/{id}", "get-server", openapi.TagServers, "Show a server", "One server, with its state on each worker that runs it.", http.StatusNotFound)
}

func opAddServer() huma.Operation {
	op := openapi.Operation(http.MethodPost, "/servers", "add-server", openapi.TagServers, "Add a server",
		"Adds a server to the workers, which also run it after restarts, and waits until it is initialized. Disabled unless the operator enables front_door.add_servers, because a caller that can start commands controls the machine.", http.StatusConflict, http.StatusBadGateway)
	op.RequestBody = openapi.JSONBody(openapi.Ref(schemaEntry), true, "The server.", map[string]any{"id": "files", "command": "mcp-server-filesystem", "args": []any{"/srv/files"}, "riskLevel": 1})
	op.DefaultStatus = http.StatusCreated
	op.Responses["201"] = &huma.Response{Headers: map[string]*huma.Param{"Location": openapi.Header("The path of the server.", huma.TypeString, "/servers/files")}}
	return op
}

func opRemoveServer() huma.Operation {
	return openapi.With(openapi.Operation(http.MethodDelete, "/servers/{id}", "remove-server", openapi.TagServers, "Remove a server",
		"Stops and removes a server that was added over the API. A server from a worker's servers file is not affected.", http.StatusNotFound, http.StatusConflict), openapi.ServerParam())
}

func opRestartServer() huma.Operation {
	op := openapi.Operation(http.MethodPost, "/servers/{id}/restart", "restart-server", openapi.TagServers, "Restart a server",
		"Every worker that runs the server replaces it with a new instance of the same entry. Calls do not fail: the old instance accepts calls until the new one is ready, and finishes its running calls. "+
			"The answer is sent once the restarts have begun; GET /servers/{id} shows their progress. If a new instance fails to start, the old one stays.", http.StatusNotFound)
	op.Parameters = []*huma.Param{openapi.ServerParam()}
	op.DefaultStatus = http.StatusAccepted
	return op
}

func opListWorkers() huma.Operation {
	return openapi.Operation(http.MethodGet, "/workers", "list-workers", openapi.TagFleet, "List the workers", "Every live worker, with the servers that it runs.")
}

func opDrainWorker() huma.Operation {
	op := openapi.Operation(http.MethodPost, "/workers/{id}/drain", "drain-worker", openapi.TagFleet, "Drain a worker",
		"The worker takes no more calls, finishes those that it runs, within worker.drain_grace, and its process ends, as with SIGTERM. Whatever started the process may start it again. "+
			"The answer is sent once draining has begun; GET /workers shows its progress. A worker that is part of callyard up cannot be drained alone: 409.", http.StatusNotFound, http.StatusConflict)
	op.DefaultStatus = http.StatusAccepted
	return op
}

func (f *fleetHandlers) opEvents(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodGet, "/events", "get-events", openapi.TagFleet, "Follow the fleet",
		"Server-sent events. Each fleet event is the whole fleet: the first is sent at once, then one after each change, so a reconnect misses nothing. "+
			"With include=changes, change events before it list the differences: tools, servers and sets that were added, removed, changed, enabled, disabled or went offline, with actor and reason. "+
			"An idle stream sends a comment every "+f.heartbeat.String()+". It ends when the front door drains.")
	op.Parameters = []*huma.Param{{Name: "include", In: "query", Description: "changes: also events named change, whose data is a FleetChange.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"changes"}}, Example: "changes"}}
	// A schema that nothing refers to is not in the document.
	data := &huma.Schema{AnyOf: []*huma.Schema{d.SchemaOf(reflect.TypeFor[Fleet]()), d.SchemaOf(reflect.TypeFor[FleetChange]())}}
	op.Responses["200"] = &huma.Response{
		Description: "The events; the data of each fleet event is a Fleet, and that of each change event a FleetChange.",
		Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema: openapi.LinesOf(data, "Events named fleet and, with include=changes, events named change. The data of each is a JSON object with the schema Fleet or FleetChange."), Example: "event: fleet\nid: 1\ndata: {\"at\":\"2026-01-02T03:04:05Z\",\"servers\":[],\"workers\":[]}\n\n",
		}},
	}
	return op
}
