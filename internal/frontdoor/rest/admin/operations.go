package admin

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

func opHealth() huma.Operation {
	return openapi.Public(openapi.Operation(http.MethodGet, "/health", "get-health", openapi.TagFleet, "Health summary", "The uptime of the front door and the servers that it knows. It requires no credential."))
}

func exampleHealth() map[string]any {
	return map[string]any{
		"status": "ok", "uptime": 86400.5, "serverCount": 1, "configuration": []any{},
		"servers": []any{map[string]any{"id": "everything", "connected": true, "initialization_state": "initialized", "pid": 4711}},
	}
}

func opLive() huma.Operation {
	return openapi.Public(openapi.Operation(http.MethodGet, "/livez", "get-livez", openapi.TagFleet, "Liveness probe", "Succeeds while the process serves requests. It requires no credential."))
}

func opReady() huma.Operation {
	return openapi.Public(openapi.Operation(http.MethodGet, "/readyz", "get-readyz", openapi.TagFleet, "Readiness probe",
		"Succeeds while calls are accepted. Fails with 503 while a dependency is down, which detail names, and while the front door drains. It requires no credential."), http.StatusServiceUnavailable)
}

func opVersion() huma.Operation {
	return openapi.Operation(http.MethodGet, "/version", "get-version", openapi.TagFleet, "Show the version", "The version of the running build and its start time.")
}

func opMetrics() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/metrics", "get-metrics", openapi.TagFleet, "Metrics", "Metrics of this front door in the Prometheus text format.")
	delete(op.Responses, "400") // unknown parameters are ignored
	op.Responses["200"] = &huma.Response{Description: "The metrics.", Content: map[string]*huma.MediaType{"text/plain": {Schema: openapi.Text("Prometheus text format.")}}}
	return op
}
