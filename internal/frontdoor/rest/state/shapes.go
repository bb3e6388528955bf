package state

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/schema"
)

// formatV1 identifies the format of a file.
const formatV1 = "callyard-state/1"

// FabricState is everything that operators have set up, as one file. A missing part is neither
// compared nor changed. An export includes empty lists of sets and switches, so that importing it
// undoes those created later.
type FabricState struct {
	Format     string           `json:"format" enum:"callyard-state/1" doc:"The format of the file, with its version."`
	Sets       []toolset.Set    `json:"sets,omitzero" required:"false" nullable:"false" doc:"The sets of the installation that were created over the API."`
	TenantSets []TenantSet      `json:"tenant_sets,omitzero" required:"false" nullable:"false" doc:"The sets of tenants other than the default one. A file of an older version, without this member, changes none of them."`
	Switches   []DisabledTools  `json:"switches,omitzero" required:"false" nullable:"false" doc:"The disabled tools, and the patterns and sets that disable tools."`
	Pins       []AcceptedDigest `json:"pins,omitempty" nullable:"false" doc:"The accepted definitions of tools. An import accepts those that the servers offer now; it does not revoke accepted ones."`
	Policy     *PolicyText      `json:"policy,omitempty" doc:"The policy of the front door. An import only compares it: each process reads its policy from a file."`
	Keys       []ExportedKey    `json:"keys,omitempty" nullable:"false" doc:"The API keys without secrets. An import only compares them, and creates none."`
}

// TenantSet is a set that a tenant created.
type TenantSet struct {
	Tenant schema.TenantID `json:"tenant" maxLength:"64" doc:"The tenant that owns the set." example:"billing"`
	Set    toolset.Set     `json:"set" doc:"The definition of the set."`
}

// DisabledTools is a disabled tool, or all tools that match a pattern.
type DisabledTools struct {
	Server schema.ServerID `json:"server,omitempty" maxLength:"256" doc:"A server id or, if wide is true, a pattern of server ids." example:"files"`
	Tool   string          `json:"tool,omitempty" maxLength:"256" doc:"A tool name or, if wide is true, a pattern of tool names." example:"delete_*"`
	Set    string          `json:"set,omitempty" maxLength:"256" doc:"Only tools of this set."`
	Wide   bool            `json:"wide,omitempty" doc:"Whether server and tool are patterns."`
	Reason string          `json:"reason,omitempty" maxLength:"1000" doc:"The reason that they are disabled; callers see it."`
}

// AcceptedDigest is the accepted definition of a tool.
type AcceptedDigest struct {
	Server schema.ServerID `json:"server" maxLength:"256" doc:"The id of the server." example:"files"`
	Tool   string          `json:"tool" maxLength:"256" doc:"The name of the tool." example:"read_file"`
	Digest string          `json:"digest" maxLength:"256" doc:"The digest of the accepted definition." example:"sha256:71accd489c13"`
}

// PolicyText is the policy that a front door uses.
type PolicyText struct {
	Version string `json:"version" doc:"The version of the policy, which is a digest of its text." example:"sha256:71accd489c13"`
	Text    string `json:"text,omitempty" doc:"The policy file as it was read; absent if there is none."`
}

// ExportedKey is an API key without its secret.
type ExportedKey struct {
	ID      string          `json:"id" doc:"The id of the key." example:"4vQxWc0aZkPm"`
	Name    string          `json:"name" doc:"The name of the principal that uses the key." example:"ci"`
	Owner   string          `json:"owner,omitempty" doc:"The person or team behind the key."`
	Tenant  schema.TenantID `json:"tenant,omitempty" doc:"The tenant of the principal; absent for the default one."`
	Groups  []string        `json:"groups,omitempty" nullable:"false" doc:"The groups of the principal, by which policies select callers."`
	Scopes  []string        `json:"scopes" nullable:"false" doc:"The scopes of the key, those of its role included."`
	Tools   []string        `json:"tools,omitempty" nullable:"false" doc:"Patterns of the tools that the key can call; absent: every tool that its scopes allow."`
	Note    string          `json:"note,omitempty" doc:"What the key is for."`
	Origin  string          `json:"origin" enum:"api,configuration" doc:"api: created with POST /keys. configuration: an entry of front_door.keys."`
	Expires *time.Time      `json:"expires_at,omitempty" doc:"When the key expires; absent if it never does."`
}

// StateChange is one difference between a file and the state.
type StateChange struct {
	Part   string `json:"part" enum:"sets,tenant_sets,switches,pins,policy,keys" doc:"The part of the state."`
	Name   string `json:"name" doc:"The set, tool or key; a set of a tenant as TENANT/SET." example:"research"`
	Action string `json:"action" enum:"add,change,remove,differs,skip" doc:"add, change, remove: the change that an import makes. differs: the part is only compared. skip: the change is impossible, for the reason in note."`
	Note   string `json:"note,omitempty" doc:"The reason for the action, if it is skip, or a remark."`
	Done   bool   `json:"done" doc:"Whether the import made the change."`
	Error  string `json:"error,omitempty" doc:"The reason that the import could not make the change."`
}

// StateChanges is the answer to PUT /state.
type StateChanges struct {
	DryRun  bool          `json:"dry_run" doc:"Whether nothing was changed."`
	Changes []StateChange `json:"changes" nullable:"false" doc:"The changes that the import made or, with dry_run, would make. Empty: the state equals the file."`
	Failed  int           `json:"failed" doc:"The number of changes that failed."`
	ETag    string        `json:"etag" doc:"The ETag of the state after the import or, with dry_run, of the current state, for If-Match."`
}

// tagOf returns the entity tag of a state.
func tagOf(s *FabricState) string {
	body, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return strconv.Quote(schema.Digest(body))
}

// keyOf returns the exported form of a key.
func keyOf(k *issued.Key) ExportedKey {
	out := ExportedKey{ID: k.ID, Name: k.Name, Owner: k.Owner, Tenant: k.Tenant, Groups: k.Groups, Scopes: append([]string{}, issued.ScopesOf(&k.Key)...), Tools: k.Tools, Note: k.Note, Origin: "api"}
	if k.Configured {
		out.Origin = "configuration"
	}
	if at := k.Expires.Time(); !at.IsZero() {
		out.Expires = &at
	}
	return out
}

func (d *DisabledTools) name() string {
	name := cmp.Or(string(d.Server), "*") + "/" + cmp.Or(d.Tool, "*")
	if d.Set != "" {
		name += " in set " + d.Set
	}
	return name
}

// where returns the switch without its reason, which identifies its target.
func (d DisabledTools) where() DisabledTools {
	d.Reason = ""
	return d
}

func (p *AcceptedDigest) name() string { return string(p.Server) + "/" + p.Tool }

// equalJSON reports whether two values have the same JSON.
func equalJSON(a, b any) bool {
	one, err := json.Marshal(a)
	other, fault := json.Marshal(b)
	return err == nil && fault == nil && string(one) == string(other)
}

// sorted returns the changes by part, in the order in which they are made, and name.
func sorted(all []StateChange) []StateChange {
	slices.SortStableFunc(all, func(a, b StateChange) int {
		return cmp.Or(cmp.Compare(slices.Index(parts, a.Part), slices.Index(parts, b.Part)), strings.Compare(a.Name, b.Name))
	})
	return all
}

const (
	partSets, partTenantSets, partSwitches, partPins, partPolicy, partKeys = "sets", "tenant_sets", "switches", "pins", "policy", "keys"

	add, change, remove, differs, skip = "add", "change", "remove", "differs", "skip"
)

var parts = []string{partSets, partTenantSets, partSwitches, partPins, partPolicy, partKeys}
