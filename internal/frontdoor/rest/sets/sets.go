package sets

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/schema"
)

// maxDefinitionBytes is the maximum size of the definition of a set in bytes.
const maxDefinitionBytes = 256 << 10

// SetItem is a set of tools.
type SetItem struct {
	Name       string          `json:"name" doc:"The name of the set." example:"research"`
	Tenant     schema.TenantID `json:"tenant,omitempty" doc:"The tenant that owns the set; default for one of the installation, which other tenants see but do not change." example:"default"`
	Origin     string          `json:"origin" enum:"api,configuration" doc:"api: created with PUT /sets/{name}. configuration: an entry of front_door.sets, which cannot be changed here."`
	ETag       string          `json:"etag,omitempty" doc:"The state of the set, for If-Match; absent for a set of the configuration." example:"\"12\""`
	By         string          `json:"by,omitempty" doc:"The principal that changed it last." example:"ops"`
	At         *time.Time      `json:"at,omitempty" doc:"When it was changed last."`
	Definition toolset.Set     `json:"definition" doc:"The definition of the set."`
}

// SetList is the answer to GET /sets.
type SetList struct {
	Sets []SetItem `json:"sets" nullable:"false" doc:"The sets that the caller may use, by name."`
}

// SetDetail is the answer to GET /sets/{name}.
type SetDetail struct {
	SetItem
	Tools   []SetTool  `json:"tools" nullable:"false" doc:"The tools of the set now, in its order."`
	LeftOut []SetClash `json:"left_out,omitempty" nullable:"false" doc:"Names that several tools would have, each with the tools that are left out for that reason."`
}

// SetTool is a tool of a set.
type SetTool struct {
	Name    string          `json:"name" doc:"The name in the set." example:"files__read_text"`
	Server  schema.ServerID `json:"server" doc:"The id of the server." example:"files"`
	Tool    string          `json:"tool" doc:"The name of the tool at its server." example:"read_text"`
	Enabled bool            `json:"enabled" doc:"False if an operator disabled the tool; its calls then return 403."`
	Reason  string          `json:"reason,omitempty" doc:"The reason that it is disabled."`
	Offline string          `json:"offline,omitempty" doc:"The reason that no worker can run it now."`
}

// SetClash is a name that several tools of a set would have.
type SetClash struct {
	Name  string    `json:"name" doc:"The name that several tools would have." example:"search"`
	Tools []ToolRef `json:"tools" nullable:"false" doc:"The tools that are left out."`
}

// ToolRef names a tool.
type ToolRef struct {
	Server schema.ServerID `json:"server" doc:"The id of the server." example:"files"`
	Tool   string          `json:"tool" doc:"The name of the tool." example:"search"`
}

// RemovedSet is the answer to DELETE /sets/{name}.
type RemovedSet struct {
	Status string `json:"status" enum:"removed" doc:"Always removed." example:"removed"`
}

type setInput struct {
	Name string `path:"name" doc:"The name of a set." example:"research"`
}

type setOutput struct {
	ETag string `header:"ETag" doc:"The state of the set; absent for a set of the configuration."`
	Body SetDetail
}

type removeInput struct {
	Name  string `path:"name"`
	Match string `header:"If-Match"`
}

// handlers are the operations on sets.
type handlers struct {
	sets  catalog.Sets // for changes
	all   *catalog.Catalog
	log   *slog.Logger
	depth int // maximum nesting of bodies
}

// Register registers the operations on sets. depth limits the nesting of bodies.
func Register(d *httpapi.Document, c *catalog.Catalog, depth int, log *slog.Logger) {
	h := &handlers{sets: c.Sets(), all: c, log: log, depth: depth}
	d.NameSchema(reflect.TypeFor[toolset.Set](), "ToolSet") // "Set" is a collection in many languages
	d.NameSchema(reflect.TypeFor[toolset.Selector](), "ToolSelector")
	d.NameSchema(reflect.TypeFor[toolset.Naming](), "ToolNaming")
	httpapi.Get(d, openapi.Answers(opList(), "The sets that you may use.", map[string]any{"sets": []any{exampleItem()}}), func(ctx context.Context, _ *httpapi.NoInput) (SetList, error) {
		list := SetList{Sets: make([]SetItem, 0)}
		for _, s := range managed(httpapi.Of(ctx), c).Sets() {
			list.Sets = append(list.Sets, itemOf(&s))
		}
		return list, nil
	})
	httpapi.Register(d, openapi.Answers(opGet(), "The set with its current tools.", exampleDetail()), func(ctx context.Context, in *setInput) (*setOutput, error) {
		view, err := managed(httpapi.Of(ctx), c).SetView(in.Name)
		if err != nil {
			return nil, err
		}
		return &setOutput{ETag: tagOf(&view.Set), Body: detailOf(view)}, nil
	})
	httpapi.HandleValue(d, opPut(d), "The set as it is stored.", exampleItem(), h.put)
	httpapi.Get(d, openapi.Answers(opRemove(), "The set was removed.", map[string]any{"status": "removed"}), h.remove)
}

// managed returns the catalog for managing the sets of a tenant: everything that the tenant sees,
// including tools that the policy denies, because the manager must see the content of a set.
func managed(x *httpapi.Exchange, c *catalog.Catalog) *catalog.Seen {
	if x.Principal.Has(scope.Admin, scope.AdminTenant) && !x.Principal.Tenant.Is(schema.DefaultTenant) {
		return catalog.TenantsOf(c).Seen(x.Principal.Tenant)
	}
	return x.Operated(c)
}

// unlimited returns an error if a credential may not change sets of its tenant because it is limited
// to some tools. A set could contain others, and credentials limited to the set could then call
// them.
func unlimited(by *schema.Principal) error {
	grant, ok := by.Grant.(interface{ Restricted() bool })
	if ok && grant.Restricted() && !by.Tenant.Is(schema.DefaultTenant) {
		return schema.Errorf(schema.KindForbidden, "Your credential is limited to some tools, and a set can have others. Change sets with a credential that has the scope tools:call.")
	}
	return nil
}

func itemOf(s *catalog.Set) SetItem {
	item := SetItem{Name: s.Name, Tenant: s.Tenant.OrDefault(), Origin: "api", ETag: tagOf(s), By: s.By, Definition: s.Set}
	if s.Configured {
		item.Origin = "configuration"
	} else {
		item.At = &s.At
	}
	return item
}

func detailOf(view *catalog.SetView) SetDetail {
	d := SetDetail{SetItem: itemOf(&view.Set), Tools: make([]SetTool, 0, len(view.Tools))}
	for i := range view.Tools {
		t := &view.Tools[i]
		of := SetTool{Name: t.Name, Server: t.Server, Tool: t.Tool.Name, Enabled: t.Switch.Enabled, Offline: t.Offline}
		if !of.Enabled {
			of.Reason = t.Switch.Reason
		}
		d.Tools = append(d.Tools, of)
	}
	for _, clash := range view.LeftOut {
		c := SetClash{Name: clash.Name}
		for _, t := range clash.Tools {
			c.Tools = append(c.Tools, ToolRef{t.Server, t.Name})
		}
		d.LeftOut = append(d.LeftOut, c)
	}
	return d
}

// tagOf returns the entity tag of a set.
func tagOf(s *catalog.Set) string {
	if s.Configured {
		return ""
	}
	return httpapi.TagOf(s.Revision)
}

// put serves PUT /sets/{name}.
func (h *handlers) put(x *httpapi.Exchange, r *http.Request) (item SetItem, err error) {
	if err := unlimited(&x.Principal); err != nil {
		return item, err
	}
	set, err := h.read(x, r)
	if err != nil {
		return item, err
	}
	tenant := x.Principal.Tenant
	var before *catalog.Set // nil if there is none
	if now, err := h.sets.Owned(tenant, set.Name); err == nil {
		before = &now
	}
	revision, err := condition(set.Name, before, r.Header.Get("If-Match"), r.Header.Get("If-None-Match"))
	if err != nil {
		return item, err
	}
	stored, err := h.sets.Put(r.Context(), tenant, set, revision, x.Principal.Name)
	if err != nil {
		return item, changed(err, set.Name)
	}
	h.log.Info("a set of tools was stored", "tenant", tenant.OrDefault(), "set", set.Name, "by", x.Principal.Name, "id", x.ID)
	item = itemOf(&stored)
	if before != nil {
		x.Changes(&before.Set, &stored.Set)
	} else {
		x.Changes(nil, &stored.Set)
	}
	x.Set("Etag", item.ETag)
	return item, nil
}

// read parses the definition of the set in the path.
func (h *handlers) read(x *httpapi.Exchange, r *http.Request) (set toolset.Set, err error) {
	body, err := x.ReadBody(r, maxDefinitionBytes)
	if err != nil {
		return set, err
	}
	if _, err := httpapi.ReadObject(body, maxDefinitionBytes, h.depth, "name", "description", "include", "exclude", "names"); err != nil {
		return set, err
	}
	if err := httpapi.Decode(body, "set", &set); err != nil {
		return set, err
	}
	name := r.PathValue("name")
	if set.Name != "" && set.Name != name {
		return set, httpapi.BadMember("name", "the name in the path, or absent")
	}
	set.Name = name
	if faults := set.Check(); len(faults) > 0 {
		e := schema.Errorf(schema.KindInvalidRequest, "The set is invalid: %s %s", faults[0].Path, faults[0].Message)
		for _, f := range faults {
			e.Faults = append(e.Faults, schema.Fault{Pointer: httpapi.PathPointer(f.Path), Message: f.Message})
		}
		return set, e
	}
	return set, nil
}

// condition returns the revision that a request with these headers changes, or 0 for a set that
// does not exist. now is the current set, or nil if there is none.
func condition(name string, now *catalog.Set, match, none string) (revision uint64, err error) {
	match, none = strings.TrimSpace(match), strings.TrimSpace(none)
	switch {
	case none != "" && none != "*":
		return 0, schema.Errorf(schema.KindInvalidRequest, "If-None-Match must be *, which creates the set only if no set has this name.")
	case none != "" && match != "":
		return 0, schema.Errorf(schema.KindInvalidRequest, "Send either If-Match or If-None-Match.")
	case match == "*" && now != nil:
		return now.Revision, nil
	case match != "":
		revision, ok := httpapi.RevisionOf(match)
		if !ok {
			return 0, changed(catalog.ErrSetChanged, name) // not a tag of a set
		}
		return revision, nil
	case none == "*" || now == nil:
		return 0, nil
	case now.Configured:
		return 0, nil // the change is refused for that
	}
	return 0, schema.Errorf(problem.KindUnguarded, "Set %q exists. To change exactly this version of it, send If-Match with its ETag, %s.", name, tagOf(now))
}

// changed converts the catalog's error for a changed set into a failed condition.
func changed(err error, name string) error {
	if errors.Is(err, catalog.ErrSetChanged) {
		return schema.Errorf(problem.KindChanged, "Set %q has changed: the ETag in the request is not its current one. Nothing was changed. Read it again with GET /sets/%s.", name, name)
	}
	return err
}

// remove serves DELETE /sets/{name}.
func (h *handlers) remove(ctx context.Context, in *removeInput) (RemovedSet, error) {
	x, name := httpapi.Of(ctx), in.Name
	if err := unlimited(&x.Principal); err != nil {
		return RemovedSet{}, err
	}
	tenant := x.Principal.Tenant
	now, err := h.sets.Owned(tenant, name)
	if err != nil {
		if _, seen := managed(x, h.all).SetView(name); seen == nil {
			err = schema.Errorf(schema.KindForbidden, "Set %q belongs to the installation; only credentials of the default tenant can change it.", name)
		}
		return RemovedSet{}, err
	}
	revision, err := condition(name, &now, in.Match, "")
	if err != nil {
		return RemovedSet{}, err
	}
	if err := h.sets.Remove(ctx, tenant, name, revision); err != nil {
		return RemovedSet{}, changed(err, name)
	}
	h.log.Info("a set of tools was removed", "tenant", tenant.OrDefault(), "set", name, "by", x.Principal.Name, "id", x.ID)
	return RemovedSet{Status: "removed"}, nil
}

func setParam() *huma.Param {
	return &huma.Param{Name: "name", In: "path", Required: true, Description: "The name of a set: 1 to 64 letters, digits, \"_\", \"-\" and \".\".", Schema: &huma.Schema{Type: huma.TypeString}, Example: "research"}
}
