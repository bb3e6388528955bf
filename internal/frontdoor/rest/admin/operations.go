package admin

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

func opHealth() huma.Operation {
	return openapi.Public(openapi.Operation(http.MethodGet, "/health", "get-health", openapi.TagFleet, "Health in short", "How long the front door runs and which servers it knows."))
}

func opLive() huma.Operation {
	return openapi.Public(openapi.Operation(http.MethodGet, "/livez", "get-livez", openapi.TagFleet, "Liveness probe", "Answers as long as the process serves."))
}

func opReady() huma.Operation {
	return openapi.Public(openapi.Operation(http.MethodGet, "/readyz", "get-readyz", openapi.TagFleet, "Readiness probe",
		"Green while calls can be taken. Red, with the name of what is missing, when a dependency is down and while the front door drains.", http.StatusServiceUnavailable))
}

func opVersion() huma.Operation {
	return openapi.Operation(http.MethodGet, "/version", "get-version", openapi.TagFleet, "The build", "Which build runs, and since when.", http.StatusBadRequest)
}

func opMetrics() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/metrics", "get-metrics", openapi.TagFleet, "Metrics", "Metrics of this front door in the Prometheus text format.")
	op.Responses["200"] = &huma.Response{Description: "The metrics.", Content: map[string]*huma.MediaType{"text/plain": {Schema: openapi.Text("Prometheus text format.")}}}
	return op
}
