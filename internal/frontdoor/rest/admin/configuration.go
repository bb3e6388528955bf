package admin

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/pkg/schema"
)

// Outcomes of the last reload of a part of the configuration.
const (
	reloadInForce = "in force"
	reloadRefused = "refused"
)

// HealthPart is a part of the configuration in GET /health.
type HealthPart struct {
	Part    string    `json:"part" enum:"policy,servers,keys" doc:"The part of the configuration." example:"policy"`
	Version string    `json:"version" doc:"The version of the content in force." example:"sha256:71accd489c13"`
	Since   time.Time `json:"since" doc:"The time at which this version came into force."`
	Tried   time.Time `json:"tried" doc:"The time at which the file was last read."`
	Outcome string    `json:"outcome" enum:"in force,refused" doc:"Whether the content that was read is in force."`
	Error   string    `json:"error,omitempty" doc:"Where to find the reason for a refusal."`
}

// ConfigurationPart is a part of the configuration of a process.
type ConfigurationPart struct {
	Part    string            `json:"part" enum:"policy,servers,keys" doc:"The part of the configuration." example:"policy"`
	Version string            `json:"version" doc:"The version of the content in force." example:"sha256:71accd489c13"`
	Since   time.Time         `json:"since" doc:"The time at which this version came into force."`
	Tried   time.Time         `json:"tried" doc:"The time at which the file was last read."`
	Outcome string            `json:"outcome" enum:"in force,refused" doc:"Whether the content that was read is in force."`
	Error   string            `json:"error,omitempty" doc:"The reason for a refusal." example:"policy.yaml:3:12: rules[0].level: must be a whole number from 1 to 3."`
	Servers map[string]string `json:"servers,omitempty" doc:"The version of each server in a servers file."`
}

// ConfiguredProcess is a live front door, approver or worker.
type ConfiguredProcess struct {
	ID    string              `json:"id" doc:"The id of the process, which is new after each start." example:"worker-1-7f3k2a"`
	Role  string              `json:"role" enum:"frontdoor,approver,worker" doc:"The role of the process." example:"worker"`
	Parts []ConfigurationPart `json:"parts" nullable:"false" doc:"The files that the process reloads."`
}

// ConfigurationDisagreement is a part of the configuration of which processes use different
// versions.
type ConfigurationDisagreement struct {
	Part     string                 `json:"part" enum:"policy,servers,keys,people_keys,caller_keys" doc:"The part of the configuration. people_keys and caller_keys are the public keys in warrants.people_keys and warrants.caller_keys of workers, and the keys with which approvers and front doors sign." example:"policy"`
	Server   schema.ServerID        `json:"server,omitempty" doc:"The server, if the part is servers." example:"files"`
	Versions []ConfigurationVersion `json:"versions" nullable:"false" doc:"The versions in use, each with its processes."`
}

// ConfigurationVersion is a version and the processes that use it.
type ConfigurationVersion struct {
	Version   string   `json:"version" doc:"A version of the content. For people_keys and caller_keys: the id of the key with which the processes sign, or those of the keys that the workers trust (none without keys)." example:"sha256:71accd489c13"`
	Processes []string `json:"processes" nullable:"false" doc:"The ids of the processes that use this version."`
}

// ConfigurationStatus is the answer to GET /configuration.
type ConfigurationStatus struct {
	Processes     []ConfiguredProcess         `json:"processes" nullable:"false" doc:"The live front doors, approvers and workers. The answering one is first."`
	Disagreements []ConfigurationDisagreement `json:"disagreements" nullable:"false" doc:"Parts for which processes use different versions: the policy of all processes, the keys of front doors and of approvers, and each server of the workers that run it. Also workers that do not trust the key with which an approver or a front door signs approved calls: they refuse those calls. After an edit, a part is listed until all processes have read it."`
}

func opConfiguration() huma.Operation {
	return openapi.Operation(http.MethodGet, "/configuration", "get-configuration", openapi.TagFleet, "Show the configuration in force",
		"The versions of the policy, the servers file and the API keys that each live front door, approver and worker uses, the outcome of its last reload, and the differences between them.")
}

func (a *handlers) configuration() ConfigurationStatus {
	processes := a.o.Catalog.Processes()
	c := ConfigurationStatus{Processes: make([]ConfiguredProcess, 0, len(processes)), Disagreements: []ConfigurationDisagreement{}}
	for _, p := range processes {
		parts := make([]ConfigurationPart, 0, len(p.InForce))
		for _, in := range p.InForce {
			parts = append(parts, ConfigurationPart{
				Part: in.Part, Version: in.Version, Since: in.Since, Tried: in.Tried, Outcome: outcomeOf(&in), Error: in.Error, Servers: in.Entries,
			})
		}
		c.Processes = append(c.Processes, ConfiguredProcess{p.ID, p.Role, parts})
	}
	for _, d := range catalog.Disagreements(processes) {
		versions := make([]ConfigurationVersion, 0, len(d.Versions))
		for _, version := range slices.Sorted(maps.Keys(d.Versions)) {
			versions = append(versions, ConfigurationVersion{version, d.Versions[version]})
		}
		c.Disagreements = append(c.Disagreements, ConfigurationDisagreement{d.Part, d.Server, versions})
	}
	return c
}

func (a *handlers) healthParts() []HealthPart {
	state := a.o.InForce()
	parts := make([]HealthPart, 0, len(state))
	for _, in := range state {
		p := HealthPart{Part: in.Part, Version: in.Version, Since: in.Since, Tried: in.Tried, Outcome: outcomeOf(&in)}
		if in.Error != "" {
			p.Error = "See GET /configuration, callyard doctor or the log of the process."
		}
		parts = append(parts, p)
	}
	return parts
}

func outcomeOf(in *schema.InForce) string {
	if in.Error != "" {
		return reloadRefused
	}
	return reloadInForce
}
