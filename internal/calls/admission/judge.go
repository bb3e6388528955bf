package admission

import (
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// narrow is a grant that may let its principal see a part of the tools only.
type narrow interface {
	// Restricted reports whether it does, Shows whether a tool is among them, with an empty
	// name the prompts and resources of the server, and Key is the same for grants that show
	// the same.
	Restricted() bool
	Shows(server schema.ServerID, tool string) bool
	Key() string
}

// Judge returns what judges what is shown to a principal, as calls of it are judged: by the
// servers that its tenant sees, by what its credential lets it call, and by what the policy denies
// whatever the arguments are. It is nil where everything is shown.
func (g *Gate) Judge(who *schema.Principal) catalog.Judge {
	var j judge
	var key []string
	if g.tenants != nil && !g.tenants.All(who.Tenant) {
		j.tenants = g.tenants
		key = append(key, "\x02", string(who.Tenant.OrDefault()))
	}
	if grant, ok := who.Grant.(narrow); ok && grant.Restricted() {
		j.grant = grant
		key = append(key, "\x03", grant.Key())
	}
	if g.policy != nil {
		for _, policy := range g.policy.Of(who.Tenant) {
			if policy == nil {
				continue
			}
			denying, byPrincipal := policy.Denying()
			if !denying {
				continue
			}
			j.policies = append(j.policies, policy)
			key = append(key, "\x01", policy.Version())
			if byPrincipal {
				key = append(append(key, who.Name, who.Owner, string(who.Tenant)), who.Groups...)
			}
		}
	}
	if len(key) == 0 {
		return nil
	}
	made := j // on the heap for those only who are restricted
	made.who, made.key = *who, strings.Join(key, "\x00")
	return &made
}

type judge struct {
	who      schema.Principal
	tenants  Tenants        // nil: the tenant sees every server
	grant    narrow         // nil: it shows all
	policies []*risk.Policy // those that deny something
	key      string
}

// Key is described with [catalog.Judge].
func (j *judge) Key() string { return j.key }

// Whole is described with [catalog.Judge].
func (j *judge) Whole() bool { return j.tenants == nil && j.grant == nil }

// Server is described with [catalog.Judge].
func (j *judge) Server(server schema.ServerID) bool {
	return j.tenants == nil || j.tenants.Sees(j.who.Tenant, server)
}

// Tool is described with [catalog.Judge].
func (j *judge) Tool(server schema.ServerID, tool string) bool { return j.shows("", server, tool) }

// Resources is described with [catalog.Judge].
func (j *judge) Resources(server schema.ServerID) bool {
	return j.shows(schema.MethodReadResource, server, "")
}

// Prompts is described with [catalog.Judge].
func (j *judge) Prompts(server schema.ServerID) bool {
	return j.shows(schema.MethodGetPrompt, server, "")
}

func (j *judge) shows(method string, server schema.ServerID, tool string) bool {
	if !j.Server(server) || j.grant != nil && !j.grant.Shows(server, tool) {
		return false
	}
	return !slices.ContainsFunc(j.policies, func(p *risk.Policy) bool {
		return p.Denies(&risk.Input{Method: method, Server: string(server), Tool: tool, Principal: j.who})
	})
}
