package admin

import (
	"context"
	"runtime"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Health is the answer to GET /health, with the JSON of MCP Bridge.
type Health struct {
	Status      string         `json:"status" enum:"ok" doc:"Always ok." example:"ok"`
	Uptime      float64        `json:"uptime" doc:"Seconds since the front door started." example:"86400.5"`
	ServerCount int            `json:"serverCount" doc:"The number of servers." example:"4"`
	Servers     []HealthServer `json:"servers" nullable:"false" doc:"The servers that this front door knows. Empty if tenants see different servers, because the request has no credential."`
	// It is public, so it does not repeat the text of a fault.
	Configuration []HealthPart `json:"configuration" nullable:"false" doc:"The files that this process reloads."`
	// Only in callyard up.
	AcceptedLosses *HealthLosses `json:"accepted_losses,omitempty" doc:"Damage to the data folder of callyard up that was accepted with --accept-loss; losses.json in the folder lists it."`
}

// HealthLosses describes the data accepted as lost with a damaged data folder.
type HealthLosses struct {
	Files   int       `json:"files" doc:"The number of damaged files in all losses." example:"1"`
	Latest  time.Time `json:"latest" doc:"The time at which a loss was last accepted. Earlier calls without a result ended as unknown."`
	Streams []string  `json:"streams" nullable:"false" doc:"The streams whose messages may be lost." example:"[\"callyard_calls\"]"`
}

// HealthServer is one server of GET /health.
type HealthServer struct {
	ID                  schema.ServerID `json:"id" doc:"The id of the server." example:"everything"`
	Connected           bool            `json:"connected" doc:"Whether at least one live worker has initialized the server."`
	InitializationState string          `json:"initialization_state" enum:"starting,initialized,timeout,error" doc:"The state of the server: starting, initialized, or the reason that it is not: timeout or error." example:"initialized"`
	PID                 int             `json:"pid" doc:"The process id of the server on the worker in the best state; 0 if it has no process." example:"4711"`
	RiskLevel           int             `json:"risk_level,omitempty" doc:"The risk level that the operator set, if any." example:"1"`
	RiskDescription     string          `json:"risk_description,omitempty" doc:"The risk level in words; absent if the operator set no level." example:"Low risk - Standard execution"`
	RunningInDocker     *bool           `json:"running_in_docker,omitempty" doc:"Whether calls run in a container, as at risk level 3; present if a risk level is set."`
}

// ProbeStatus is the answer of the probes. Generators name the values of its member Status, so a type
// Status would be declared twice.
type ProbeStatus struct {
	Status string `json:"status" enum:"ok,ready" doc:"ok from GET /livez, and ready from GET /readyz." example:"ok"`
}

// Version is the answer to GET /version.
type Version struct {
	Version string    `json:"version" doc:"The version of the front door." example:"0.1.0"`
	Go      string    `json:"go" doc:"The Go release that built it." example:"go1.26.0"`
	Started time.Time `json:"started" doc:"When the process started."`
}

// Options are the dependencies of the probes and reports. Catalog is required.
type Options struct {
	Catalog *catalog.Catalog
	// Metrics is served at /metrics. If nil, that path does not exist.
	Metrics *telemetry.Metrics
	// Backlog returns the counts of stored work that has not ended.
	Backlog func() calls.Backlog
	// Version is the build version, Started the start time of the process.
	Version string
	Started time.Time
	// Ready returns nil if calls can be accepted, else an error that describes the problem.
	Ready func() error
	// Draining reports whether the front door is shutting down.
	Draining func() bool
	// InForce returns the effective configuration of this process.
	InForce func() []schema.InForce
	// Losses is the data accepted as lost with a damaged data folder; nil means none.
	Losses *HealthLosses
}

// handlers are the probes and the reports for operators.
type handlers struct{ o Options }

// Register registers the probes and the reports.
func Register(d *httpapi.Document, o Options) {
	a := &handlers{o}
	httpapi.Get(d, openapi.Answers(opHealth(), "The process serves requests.", exampleHealth()), func(context.Context, *httpapi.NoInput) (Health, error) { return a.health(), nil })
	httpapi.Get(d, openapi.Answers(opLive(), "The process serves requests.", map[string]any{"status": "ok"}), func(context.Context, *httpapi.NoInput) (ProbeStatus, error) { return ProbeStatus{Status: "ok"}, nil })
	httpapi.Get(d, openapi.Answers(opReady(), "Calls are accepted.", map[string]any{"status": "ready"}), func(context.Context, *httpapi.NoInput) (ProbeStatus, error) {
		return ProbeStatus{Status: "ready"}, a.ready()
	})
	httpapi.Get(d, openapi.Answers(opVersion(), "The version.", map[string]any{"version": "0.1.0", "go": "go1.26.0", "started": "2026-01-02T03:04:05Z"}), func(context.Context, *httpapi.NoInput) (Version, error) {
		return Version{Version: a.o.Version, Go: runtime.Version(), Started: a.o.Started.UTC()}, nil
	})
	if a.o.Metrics != nil {
		d.HandleHTTP(opMetrics(), a.o.Metrics.Handler()) // scrapers add their own parameters
	}
	httpapi.Get(d, openapi.Answers(opFrontDoors(), "The front doors and the figures of the installation.", nil), func(context.Context, *httpapi.NoInput) (FrontDoorList, error) { return a.frontDoors(), nil })
	httpapi.Get(d, openapi.Answers(opConfiguration(), "The processes with their configuration, and the differences.", nil), func(context.Context, *httpapi.NoInput) (ConfigurationStatus, error) { return a.configuration(), nil })
}

func (a *handlers) health() Health {
	servers := a.o.Catalog.Servers()
	h := Health{
		Status: "ok", Uptime: float64(time.Since(a.o.Started).Milliseconds()) / 1000,
		ServerCount: len(servers), Servers: make([]HealthServer, 0, len(servers)), Configuration: a.healthParts(),
		AcceptedLosses: a.o.Losses,
	}
	if catalog.TenantsOf(a.o.Catalog).Apart() {
		servers = nil // the request has no credential
	}
	for i := range servers {
		s := HealthServer{ID: servers[i].ID, Connected: servers[i].Connected, InitializationState: string(servers[i].State), PID: servers[i].PID}
		s.RiskLevel, s.RiskDescription, s.RunningInDocker = httpapi.Risk(servers[i].Risk, servers[i].BestSandbox)
		h.Servers = append(h.Servers, s)
	}
	return h
}

// ready returns the reason why this front door cannot accept calls.
func (a *handlers) ready() error {
	var e *schema.Error
	if a.o.Draining() {
		e = schema.Errorf(schema.KindUnavailable, "Not ready: the front door is draining before it stops.")
	} else if err := a.o.Ready(); err != nil {
		e = schema.Errorf(schema.KindUnavailable, "Not ready: %w.", err)
	} else {
		return nil
	}
	e.Retryable, e.RetryAfter = true, time.Second
	return e
}
