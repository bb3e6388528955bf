package rest

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

func (a *API) opHealth() huma.Operation {
	return public(operation(http.MethodGet, "/health", "get-health", tagFleet, "Health in short", "How long the front door runs and which servers it knows."))
}

func (a *API) opLive() huma.Operation {
	return public(operation(http.MethodGet, "/livez", "get-livez", tagFleet, "Liveness probe", "Answers as long as the process serves."))
}

func (a *API) opReady() huma.Operation {
	return public(operation(http.MethodGet, "/readyz", "get-readyz", tagFleet, "Readiness probe",
		"Green while calls can be taken. Red, with the name of what is missing, when a dependency is down and while the front door drains.", http.StatusServiceUnavailable))
}

func (a *API) opVersion() huma.Operation {
	return operation(http.MethodGet, "/version", "get-version", tagFleet, "The build", "Which build runs, and since when.", http.StatusBadRequest)
}

func (a *API) opMetrics() huma.Operation {
	op := operation(http.MethodGet, "/metrics", "get-metrics", tagFleet, "Metrics", "Metrics of this front door in the Prometheus text format.")
	op.Responses["200"] = &huma.Response{Description: "The metrics.", Content: map[string]*huma.MediaType{"text/plain": {Schema: text("Prometheus text format.")}}}
	return op
}

func (a *API) opListWorkers() huma.Operation {
	return operation(http.MethodGet, "/workers", "list-workers", tagFleet, "List the workers", "Every live worker, with the servers it holds.", http.StatusBadRequest)
}

func (a *API) opEvents() huma.Operation {
	op := operation(http.MethodGet, "/events", "get-events", tagFleet, "Follow the fleet",
		"Server-sent events. Each fleet event is the whole fleet: the first one at once, then one after each change, so nothing is missed by reconnecting. "+
			"A quiet stream sends a comment every "+a.o.Heartbeat.String()+". It ends when the front door drains.", http.StatusBadRequest)
	op.Responses["200"] = &huma.Response{
		Description: "The events; the data of each is a Fleet.",
		Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema: linesOf(ref(schemaFleet), "Events named fleet. The data of each is one JSON object of the shape Fleet."), Example: "event: fleet\nid: 1\ndata: {\"at\":\"2026-01-02T03:04:05Z\",\"servers\":[],\"workers\":[]}\n\n",
		}},
	}
	return op
}

func (a *API) opListServers() huma.Operation {
	return operation(http.MethodGet, "/servers", "list-servers", tagServers, "List the servers", "Every server that a live worker holds, by id.", http.StatusBadRequest)
}

func (a *API) opGetServer() huma.Operation {
	return operation(http.MethodGet, "/servers/{id}", "get-server", tagServers, "Show a server", "One server, with the word of every worker that holds it.", http.StatusBadRequest, http.StatusNotFound)
}

func (a *API) opAddServer() huma.Operation {
	op := operation(http.MethodPost, "/servers", "add-server", tagServers, "Add a server",
		"Has the workers hold a server, now and after a restart, and waits until it is initialized. Off unless the operator switches it on (front_door.add_servers): a caller that can start commands owns the machine.",
		http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusBadGateway, http.StatusServiceUnavailable)
	op.RequestBody = jsonBody(ref(schemaEntry), true, "The server.", map[string]any{"id": "files", "command": "mcp-server-filesystem", "args": []any{"/srv/files"}, "riskLevel": 1})
	op.Responses["201"] = jsonAnswer(schemaAdded, "The server is connected.", map[string]any{"id": "files", "status": "connected", "pid": 4711, "risk_level": 1, "risk_description": "Low risk - Standard execution", "running_in_docker": false})
	op.Responses["201"].Headers = map[string]*huma.Param{"Location": header("The path of the server.", huma.TypeString, "/servers/files")}
	return op
}

func (a *API) opRemoveServer() huma.Operation {
	op := operation(http.MethodDelete, "/servers/{id}", "remove-server", tagServers, "Remove a server",
		"Stops a server that was added over the API and forgets it. One from a worker's servers file is not touched.", http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{serverParam()}
	op.Responses["200"] = jsonAnswer(schemaRemoved, "The server is gone.", map[string]any{"status": "disconnected"})
	return op
}

func (a *API) opRestartServer() huma.Operation {
	op := operation(http.MethodPost, "/servers/{id}/restart", "restart-server", tagServers, "Start a server again",
		"Every worker that holds the server replaces it by a new start of itself, of the entry that it has. Calls do not fail: the old one takes them until the new one is ready, and finishes those that it has. "+
			"It answers once the new starts have begun; GET /servers/{id} shows how they are. A start that fails leaves the old one in place.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{serverParam()}
	op.Responses["202"] = jsonAnswer(schemaRestarted, "The new starts have begun.", map[string]any{"id": "files", "status": "restarting"})
	return op
}

func (a *API) opListTools() huma.Operation {
	return operation(http.MethodGet, "/tools", "list-tools", tagServers, "List all tools",
		"Every tool of every server, by server and name, in pages (a ToolList). With the format of a model provider, all tools that can be called as that provider takes them, under names that it takes (a ProviderToolList); POST /tool-calls runs what the model makes of them.", http.StatusBadRequest, http.StatusNotFound)
}

func (a *API) opServerTools() huma.Operation {
	op := a.listOperation("/servers/{id}/tools", "list-server-tools", "List the tools of a server", schemaToolsOf, "The tools.",
		map[string]any{"tools": []any{map[string]any{"name": "echo", "description": "Echoes back the input", "inputSchema": map[string]any{"type": "object"}}}})
	return op
}

func (a *API) opSwitchTool() huma.Operation {
	op := operation(http.MethodPatch, "/servers/{id}/tools/{tool}", "switch-tool", tagServers, "Switch a tool off or on",
		"A tool that is switched off answers 403 with the reason, at every front door and over restarts.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{serverParam(), toolParam()}
	op.RequestBody = jsonBody(ref(schemaSwitch), true, "The switch.", map[string]any{"enabled": false, "reason": "Deletes files; use archive instead."})
	op.Responses["200"] = jsonAnswer(schemaSwitched, "The switch as it stands.", map[string]any{"server": "everything", "name": "echo", "enabled": false, "reason": "Deletes files; use archive instead.", "by": "ops", "at": "2026-01-02T03:04:05Z"})
	return op
}

func (a *API) opListResources() huma.Operation {
	op := a.listOperation("/servers/{id}/resources", "list-server-resources", "List the resources of a server", schemaResources, "The resources; with uri, the content of that one.",
		map[string]any{"resources": []any{map[string]any{"uri": "demo://resource/1", "name": "Resource 1"}}})
	op.Parameters = append(op.Parameters, &huma.Param{Name: "uri", In: "query", Description: "Read this resource instead.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "demo://resource/1"}, a.callParams()[0])
	for status, r := range problems(callStatuses()...) {
		op.Responses[status] = r
	}
	op.Responses["200"].Content["application/json"].Schema = &huma.Schema{AnyOf: []*huma.Schema{ref(schemaResources), ref(schemaReadAnswer)}}
	return op
}

func (a *API) opListTemplates() huma.Operation {
	return a.listOperation("/servers/{id}/resources/templates", "list-server-resource-templates", "List the resource templates of a server", schemaTemplates, "The templates.",
		map[string]any{"resourceTemplates": []any{map[string]any{"uriTemplate": "demo://resource/{id}", "name": "Resource"}}})
}

func (a *API) opListPrompts() huma.Operation {
	return a.listOperation("/servers/{id}/prompts", "list-server-prompts", "List the prompts of a server", schemaPrompts, "The prompts.",
		map[string]any{"prompts": []any{map[string]any{"name": "simple-prompt", "description": "A prompt without arguments"}}})
}

// listOperation describes a list that is passed on as the server gave it.
func (a *API) listOperation(path, id, summary, schemaName, what string, example any) huma.Operation {
	op := operation(http.MethodGet, path, id, tagServers, summary, "Each entry is exactly as the server gave it.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{serverParam()}
	op.Responses["200"] = jsonAnswer(schemaName, what, example)
	return op
}
