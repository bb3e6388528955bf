package state

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/schema"
)

// maxFileBytes is the maximum size of a file in bytes.
const maxFileBytes = 8 << 20

// Maximum lengths of names and of reasons in characters, as in the document.
const (
	maxName   = 256
	maxReason = 1000
)

// Options are the dependencies of the operations. Catalog and Log are required.
type Options struct {
	Catalog *catalog.Catalog
	Keys    *issued.Keys // nil if there are none
	// Tenants is the section tenants. If nil, there is none, and sets of every tenant are imported.
	Tenants *tenants.Book
	// Policy returns the version and the text of the policy. If nil, there is none.
	Policy func() (version, text string)
	// AcceptGroups and Accepted are the same as in the operations on accepted definitions.
	AcceptGroups []string
	Accepted     func(ctx context.Context, by schema.Principal, server schema.ServerID, accepted []catalog.Acceptance) error
	Depth        int // maximum nesting of a body
	Log          *slog.Logger
}

type handlers struct{ o Options }

// Register registers the operations on the state.
func Register(d *httpapi.Document, o Options) {
	h := &handlers{o}
	httpapi.HandleValue(d, opGet(), "The state.", exampleState(), h.get)
	httpapi.HandleValue(d, opPut(d), "The changes that were made or, with dry_run, would be made.", exampleChanges(), h.put)
}

// now returns the current state and its sets, including those of the configuration, with their
// revisions.
func (h *handlers) now(by *schema.Principal) (*FabricState, []catalog.Set) {
	s := &FabricState{Format: formatV1, Sets: []toolset.Set{}, TenantSets: []TenantSet{}, Switches: []DisabledTools{}, Policy: &PolicyText{Version: "none"}}
	sets := h.o.Catalog.Sets().List(schema.AllTenants())
	for _, set := range sets {
		switch {
		case !set.Tenant.Is(schema.DefaultTenant):
			s.TenantSets = append(s.TenantSets, TenantSet{set.Tenant, set.Set})
		case !set.Configured:
			s.Sets = append(s.Sets, set.Set)
		}
	}
	for _, sw := range h.o.Catalog.Switches().List() {
		s.Switches = append(s.Switches, DisabledTools{Server: sw.Server, Tool: sw.Tool, Set: sw.Set, Wide: sw.Wide, Reason: sw.Reason})
	}
	for _, server := range h.o.Catalog.Servers() {
		digests := h.o.Catalog.Operator().Accepted(server.ID)
		for _, tool := range slices.Sorted(maps.Keys(digests)) {
			s.Pins = append(s.Pins, AcceptedDigest{server.ID, tool, digests[tool]})
		}
	}
	if h.o.Policy != nil {
		s.Policy.Version, s.Policy.Text = h.o.Policy()
	}
	keys := h.o.Keys.List(by)
	for i := range keys {
		s.Keys = append(s.Keys, keyOf(&keys[i]))
	}
	return s, sets
}

// get serves GET /state.
func (h *handlers) get(x *httpapi.Exchange, _ *http.Request) (*FabricState, error) {
	s, _ := h.now(&x.Principal)
	x.Set("Etag", tagOf(s))
	return s, nil
}

// put serves PUT /state.
func (h *handlers) put(x *httpapi.Exchange, r *http.Request) (answer StateChanges, err error) {
	file, err := h.read(x, r)
	if err != nil {
		return answer, err
	}
	now, sets := h.now(&x.Principal)
	tag, match := tagOf(now), strings.TrimSpace(r.Header.Get("If-Match"))
	answer.DryRun = x.Query.Get("dry_run") == "true"
	switch {
	case answer.DryRun && match == "", match == "*", match == tag:
	case match == "":
		return answer, schema.Errorf(problem.KindUnguarded, "Send If-Match with the ETag of the state that you have seen; a request with dry_run=true returns it with the differences.")
	default:
		return answer, schema.Errorf(problem.KindChanged, "The state has changed: the ETag in the request is not the current one. Nothing was changed. Get the new differences and ETag with dry_run=true.")
	}
	steps := h.plan(file, now, sets, &x.Principal)
	if !answer.DryRun {
		run(r.Context(), steps)
		after, _ := h.now(&x.Principal)
		tag = tagOf(after)
		x.Changes(now, after)
		h.o.Log.Info("a state was imported", "changes", len(steps), "by", x.Principal.Name, "id", x.ID)
	}
	answer.Changes = make([]StateChange, 0, len(steps))
	for i := range steps {
		answer.Changes = append(answer.Changes, steps[i].StateChange)
		if steps[i].Error != "" {
			answer.Failed++
		}
	}
	answer.Changes, answer.ETag = sorted(answer.Changes), tag
	x.Set("Etag", tag)
	return answer, nil
}

// run makes the changes of the steps. A step may depend on another: a set that includes a set, or a
// switch of the tools of a set. So failed steps are retried as long as others succeed.
func run(ctx context.Context, steps []step) {
	for progress := true; progress; {
		progress = false
		for i := range steps {
			s := &steps[i]
			if s.do == nil || s.Done {
				continue
			}
			if err := s.do(ctx); err != nil {
				s.Error = problem.Of(err).Detail
				continue
			}
			s.Done, s.Error, progress = true, "", true
		}
	}
}

// read parses a file.
func (h *handlers) read(x *httpapi.Exchange, r *http.Request) (*FabricState, error) {
	body, err := x.ReadBody(r, maxFileBytes)
	if err != nil {
		return nil, err
	}
	if _, err := httpapi.ReadObject(body, maxFileBytes, h.o.Depth, "format", partSets, partTenantSets, partSwitches, partPins, partPolicy, partKeys); err != nil {
		return nil, err
	}
	var file FabricState
	if err := httpapi.Decode(body, "state", &file); err != nil {
		return nil, err
	}
	if file.Format != formatV1 {
		return nil, httpapi.BadMember("format", "%q", formatV1)
	}
	sets := slices.Clone(file.Sets)
	for i := range file.TenantSets {
		if of := file.TenantSets[i].Tenant; !of.Valid() || of.Is(schema.DefaultTenant) {
			return nil, httpapi.BadMember("tenant", "the id of a tenant other than %s", schema.DefaultTenant)
		}
		sets = append(sets, file.TenantSets[i].Set)
	}
	for i := range sets {
		if faults := sets[i].Check(); len(faults) > 0 {
			return nil, schema.Errorf(schema.KindInvalidRequest, "The set %q is invalid: %s %s", problem.Printable(sets[i].Name, 64), faults[0].Path, faults[0].Message)
		}
	}
	for i := range file.Switches {
		sw := &file.Switches[i]
		if err := bounded(map[string]string{"server": string(sw.Server), "tool": sw.Tool, "set": sw.Set, "reason": sw.Reason}); err != nil {
			return nil, err
		}
		if sw.Wide && sw.Server == "" && sw.Tool == "" && sw.Set == "" || !sw.Wide && (sw.Server == "" || sw.Tool == "" || sw.Set != "") {
			return nil, schema.Errorf(schema.KindInvalidRequest, "A switch must have a server and a tool or, with wide: true, a pattern or a set.")
		}
	}
	for i := range file.Pins {
		pin := &file.Pins[i]
		if err := bounded(map[string]string{"server": string(pin.Server), "tool": pin.Tool, "digest": pin.Digest}); err != nil {
			return nil, err
		}
	}
	return &file, nil
}

// bounded refuses members that are longer than the document allows.
func bounded(members map[string]string) error {
	for name, text := range members {
		most := maxName
		if name == "reason" {
			most = maxReason
		}
		if utf8.RuneCountInString(text) > most {
			return httpapi.BadMember(name, "a text of at most %d characters", most)
		}
	}
	return nil
}
