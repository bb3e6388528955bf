package admission

import (
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// narrow is a grant that may restrict its principal to some tools.
type narrow interface {
	// Restricted reports whether the grant is restricted. Shows reports whether it includes a
	// tool; an empty name stands for the prompts and resources of the server. Key is equal for
	// grants that include the same.
	Restricted() bool
	Shows(server schema.ServerID, tool string) bool
	Key() string
}

// Judge returns the visibility filter of a principal, or nil if everything is visible. It applies the
// same limits as calls: the servers that the tenant sees, the tools that the credential includes, and
// the tools that the policy denies for all arguments.
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
	made := j // a copy, so that only restricted principals need an allocation
	made.who, made.key = *who, strings.Join(key, "\x00")
	return &made
}

type judge struct {
	who      schema.Principal
	tenants  *catalog.Tenants // if nil, the tenant sees every server
	grant    narrow           // if nil, unrestricted
	policies []*risk.Policy   // only those that deny something
	key      string
}

// Key implements [catalog.Judge].
func (j *judge) Key() string { return j.key }

// SeesEverything implements [catalog.Judge].
func (j *judge) SeesEverything() bool { return j.tenants == nil && j.grant == nil }

// Server implements [catalog.Judge].
func (j *judge) Server(server schema.ServerID) bool {
	return j.tenants == nil || j.tenants.Sees(j.who.Tenant, server)
}

// Tool implements [catalog.Judge].
func (j *judge) Tool(server schema.ServerID, tool string) bool { return j.shows("", server, tool) }

// Resources implements [catalog.Judge].
func (j *judge) Resources(server schema.ServerID) bool {
	return j.shows(schema.MethodReadResource, server, "")
}

// Prompts implements [catalog.Judge].
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
