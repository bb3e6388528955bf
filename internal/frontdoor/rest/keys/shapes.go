package keys

import (
	"slices"
	"time"

	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/pkg/schema"
)

// APIKey is an API key, without its secret.
type APIKey struct {
	ID        string          `json:"id" doc:"The id, which stays when the key is rotated." example:"4vQxWc0aZkPm"`
	Name      string          `json:"name" doc:"The name of the principal; no other key has it." example:"ci"`
	Owner     string          `json:"owner,omitempty" doc:"The person or team behind the key." example:"build team"`
	Groups    []string        `json:"groups,omitempty" nullable:"false" doc:"The groups that the principal is in." example:"[\"dev\"]"`
	Tenant    schema.TenantID `json:"tenant,omitempty" doc:"The tenant of the principal; absent for the default one."`
	Role      string          `json:"role,omitempty" enum:"platform-admin,tenant-admin,developer,caller,auditor" doc:"The role that the scopes come from; absent if they were listed." example:"developer"`
	Scopes    []string        `json:"scopes" nullable:"false" doc:"What the key is allowed to do: tools:read, tools:list, tools:call, tools:call:SERVER, tools:call:@SET, calls:read, calls:read:all, approve, admin, admin:tenant." example:"[\"tools:read\",\"tools:call:files\"]"`
	Tools     []string        `json:"tools,omitempty" nullable:"false" doc:"Patterns of SERVER/TOOL with * and ?. Of the tools that the scopes allow, the key can call only those that match. Absent: all of them." example:"[\"files/read_*\"]"`
	Limits    *scope.Limits   `json:"limits,omitempty" doc:"Limits of the key, in addition to those of the configuration; absent: none."`
	Note      string          `json:"note,omitempty" doc:"What the key is for."`
	Origin    string          `json:"origin" enum:"api,configuration" doc:"api: created with POST /keys. configuration: an entry of front_door.keys, which cannot be changed here, and may do everything if it has no role."`
	ETag      string          `json:"etag,omitempty" doc:"The state of the key, for If-Match; absent for a key of the configuration." example:"\"12\""`
	CreatedAt *time.Time      `json:"created_at,omitempty" doc:"When the key was created; absent for a key of the configuration."`
	CreatedBy string          `json:"created_by,omitempty" doc:"The principal that created it." example:"ops"`
	ChangedAt *time.Time      `json:"changed_at,omitempty" doc:"When the key was changed last; absent if it never was."`
	ChangedBy string          `json:"changed_by,omitempty" doc:"The principal that changed it last." example:"ops"`
	RotatedAt *time.Time      `json:"rotated_at,omitempty" doc:"When the key was rotated last; absent if it never was."`
	ExpiresAt *time.Time      `json:"expires_at,omitempty" doc:"When the key expires. Absent: it never expires; only keys of the configuration can have no expiry."`
	LastUsed  *time.Time      `json:"last_used_at,omitempty" doc:"When the key was last used, to the minute. A use at another front door can be reported a minute late. Absent: it was never used, or is a key of the configuration."`
	Former    []FormerSecret  `json:"former_secrets,omitempty" nullable:"false" doc:"Secrets from before rotations that are still accepted."`
}

// FormerSecret is a secret of a key from before it was rotated.
type FormerSecret struct {
	Until time.Time `json:"until" doc:"When the secret becomes invalid."`
}

// NewAPIKey is a key with its secret.
type NewAPIKey struct {
	APIKey
	Secret string `json:"secret" doc:"The key that clients send. It is in this answer only: Callyard stores its SHA-256." example:"cyk_4vQxWc0aZkPm_2m0Zr8rY5QdW1bG7uKpXfT3nLcVh9sAe0y1iZk"`
}

// APIKeyList is the answer to GET /keys.
type APIKeyList struct {
	Keys []APIKey `json:"keys" nullable:"false" doc:"The keys, without secrets."`
}

// APIKeyRequest is the body of POST /keys.
type APIKeyRequest struct {
	Name    string          `json:"name" minLength:"1" maxLength:"128" doc:"The name of the principal that uses the key." example:"ci"`
	Owner   string          `json:"owner,omitempty" maxLength:"128" doc:"The person or team behind the key. Absent: the owner of your credential."`
	Tenant  schema.TenantID `json:"tenant,omitempty" maxLength:"64" doc:"The tenant of the principal. Absent: your tenant. Only credentials of the default tenant can create keys of other tenants."`
	Groups  []string        `json:"groups,omitempty" nullable:"false" maxItems:"64" doc:"The groups of the principal, by which policies select callers."`
	Role    string          `json:"role,omitempty" enum:"platform-admin,tenant-admin,developer,caller,auditor" doc:"The role, instead of scopes. It cannot have a scope that your own credential does not have." example:"developer"`
	Scopes  []string        `json:"scopes,omitempty" nullable:"false" maxItems:"256" doc:"Only scopes that your own credential has. Required if role is absent." example:"[\"tools:read\",\"tools:call:files\"]"`
	Tools   []string        `json:"tools,omitempty" nullable:"false" maxItems:"256" doc:"Patterns of SERVER/TOOL. Of the tools that the scopes allow, the key can call only those that match." example:"[\"files/read_*\"]"`
	Limits  *scope.Limits   `json:"limits,omitempty" doc:"Limits of the key, in addition to those of the configuration. They cannot exceed the limits of your own key."`
	Note    string          `json:"note,omitempty" maxLength:"1000" doc:"What the key is for."`
	Expires *time.Time      `json:"expires_at,omitempty" doc:"When the key expires, at most 5 years from now; absent: in 90 days."`
}

// APIKeyChange is the body of PATCH /keys/{id}. Absent members are unchanged.
type APIKeyChange struct {
	Owner   *string       `json:"owner,omitempty" maxLength:"128" doc:"The person or team behind the key."`
	Groups  []string      `json:"groups,omitempty" nullable:"false" maxItems:"64" doc:"Replaces all groups of the principal; [] removes them."`
	Role    string        `json:"role,omitempty" enum:"platform-admin,tenant-admin,developer,caller,auditor" doc:"Replaces the scopes."`
	Scopes  []string      `json:"scopes,omitempty" nullable:"false" maxItems:"256" doc:"Replace the role."`
	Tools   []string      `json:"tools,omitempty" nullable:"false" maxItems:"256" doc:"Replaces all patterns of tools; [] removes them, so that the key can call every tool that its scopes allow."`
	Limits  *scope.Limits `json:"limits,omitempty" doc:"Replaces all limits of the key; {} removes them."`
	Note    *string       `json:"note,omitempty" maxLength:"1000" doc:"What the key is for."`
	Expires *time.Time    `json:"expires_at,omitempty" doc:"When the key expires, at most 5 years from now."`
}

// APIKeyRotation is the body of POST /keys/{id}/rotate.
type APIKeyRotation struct {
	Grace   *int64     `json:"grace_seconds,omitempty" minimum:"0" maximum:"604800" doc:"The number of seconds for which the previous secret stays valid; absent: 86400 (one day). At most 7 days; 0 makes it invalid at once." example:"86400"`
	Expires *time.Time `json:"expires_at,omitempty" doc:"When the key expires; absent: unchanged."`
}

// RevokedAPIKey is the answer to DELETE /keys/{id}.
type RevokedAPIKey struct {
	Status string `json:"status" enum:"revoked" doc:"Always revoked." example:"revoked"`
}

// keyOf returns the public view of a key.
func keyOf(k *issued.Key) APIKey {
	key := APIKey{
		ID: k.ID, Name: k.Name, Owner: k.Owner, Groups: k.Groups, Tenant: k.Tenant, Role: k.Role, Scopes: slices.Concat([]string{}, issued.ScopesOf(&k.Key)), Tools: k.Tools, Note: k.Note, Origin: "configuration", ExpiresAt: timeOf(k.Expires.Time()),
	}
	if l := k.Bounds(); !l.None() {
		key.Limits = &l
	}
	if k.Configured {
		return key
	}
	key.Origin, key.ETag = "api", httpapi.TagOf(k.Revision)
	key.CreatedAt, key.CreatedBy, key.ChangedAt, key.ChangedBy = timeOf(k.Created.Time()), k.CreatedBy, timeOf(k.Changed.Time()), k.ChangedBy
	key.RotatedAt, key.LastUsed = timeOf(k.Rotated.Time()), timeOf(k.LastUsed)
	now := time.Now()
	for _, f := range k.Former {
		if now.Before(f.Until.Time()) {
			key.Former = append(key.Former, FormerSecret{f.Until.Time()})
		}
	}
	return key
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// recordOf returns the part of a key that its digests in the audit record cover: without members
// that change by themselves.
func recordOf(k *issued.Key) APIKey {
	answer := keyOf(k)
	answer.LastUsed, answer.Former = nil, nil
	return answer
}
