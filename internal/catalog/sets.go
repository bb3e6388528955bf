package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/store/settable"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// mostSets bounds the sets that are made over the API.
const mostSets = 1000

// ErrSetChanged means that a set is not as the caller saw it last.
var ErrSetChanged = errors.New("catalog: the set has changed")

// Set is a set of tools with where it comes from.
type Set struct {
	toolset.Set
	// Configured says that it stands in the configuration, and cannot be changed here.
	Configured bool
	// Revision counts up with each change of a set that was made over the API.
	Revision uint64
	By       string
	At       time.Time
}

// SetTool is a tool under its name in a set.
type SetTool struct {
	Tool
	Name string
}

// SetView is what a set has now.
type SetView struct {
	Set
	// Tools are those of the set in its order, also those that are switched off or offline.
	Tools []SetTool
	// LeftOut are tools that have no name in the set, by the name that they share.
	LeftOut []toolset.Clash
}

// sets are the sets of tools that a catalog knows.
type sets struct {
	table *bus.Table[settable.Set] // nil: NATS has none
	fault error                    // why it is nil

	mu         sync.Mutex
	configured toolset.All
	// What was composed of the tools that there are; nil: nothing yet.
	tools []*toolset.Tool
	made  map[string]*toolset.Composition
}

// forget has every set composed again where it is used next.
func (k *sets) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tools, k.made = nil, nil
}

// Sets is the part of the catalog that knows sets of tools. It is safe for concurrent use.
type Sets struct{ c *Catalog }

// Sets returns the part of the catalog that knows sets of tools.
func (c *Catalog) Sets() Sets { return Sets{c} }

// Configure gives the catalog the sets of the configuration; the error says which of them
// is wrong, and why.
func (s Sets) Configure(list []toolset.Set) error {
	all := make(toolset.All, len(list))
	for i := range list {
		all[list[i].Name] = &list[i]
	}
	for name := range all {
		if why := all.Check(name); why != "" {
			return errors.New(why)
		}
	}
	k := &s.c.sets
	k.mu.Lock()
	k.configured = all
	k.mu.Unlock()
	s.changed()
	return nil
}

// all returns every set by name. One of the configuration hides one of the API.
func (k *sets) all() toolset.All {
	all := make(toolset.All)
	if k.table != nil {
		for _, row := range k.table.All() {
			var set toolset.Set
			if json.Unmarshal(row.Definition, &set) == nil { // what a newer version wrote may not be readable
				all[row.Name] = &set
			}
		}
	}
	maps.Copy(all, k.configured)
	return all
}

// List returns every set, sorted by name.
func (s Sets) List() []Set {
	k := &s.c.sets
	k.mu.Lock()
	all := k.all()
	k.mu.Unlock()
	list := make([]Set, 0, len(all))
	for name := range all {
		if set, err := s.Get(name); err == nil {
			list = append(list, set)
		}
	}
	slices.SortFunc(list, func(a, b Set) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Get returns a set. The error is of KindNotFound.
func (s Sets) Get(name string) (Set, error) {
	k := &s.c.sets
	k.mu.Lock()
	defer k.mu.Unlock()
	if set := k.configured[name]; set != nil {
		return Set{Set: *set, Configured: true}, nil
	}
	if k.table != nil {
		if row, revision, ok := k.table.Revision(settable.Key(name)); ok {
			if set, err := readSet(&row, revision); err == nil {
				return set, nil
			}
		}
	}
	return Set{}, noSet(name)
}

// noSet is the error for a set that is not there, noSetTool for a tool that it does not have.
func noSet(name string) error {
	return schema.Errorf(schema.KindNotFound, "There is no set %q. GET /sets lists the sets.", name)
}

func noSetTool(set, name string) error {
	return schema.Errorf(schema.KindNotFound, "Set %q has no tool %q. GET /sets/%s lists its tools.", set, name, set)
}

func readSet(row *settable.Set, revision uint64) (Set, error) {
	set := Set{Revision: revision, By: row.By, At: row.At}
	if err := json.Unmarshal(row.Definition, &set.Set); err != nil {
		return Set{}, fmt.Errorf("reading set %q: %w", row.Name, err)
	}
	return set, nil
}

// Put stores a set for all front doors and over restarts. It replaces the one with the
// revision; 0 makes a new one. Errors: [ErrSetChanged] where the set has another
// revision, is there already or is gone; KindConflict for one of the configuration;
// KindInvalidRequest for one that cannot be composed; KindUnavailable where it cannot be
// stored.
func (s Sets) Put(ctx context.Context, set toolset.Set, revision uint64, by string) (Set, error) {
	k := &s.c.sets
	if err := s.changeable(set.Name); err != nil {
		return Set{}, err
	}
	if faults := set.Check(); len(faults) > 0 {
		return Set{}, schema.Errorf(schema.KindInvalidRequest, "The set is invalid: %s %s", faults[0].Path, faults[0].Message)
	}
	k.mu.Lock()
	all := k.all()
	k.mu.Unlock()
	if len(all) >= mostSets && all[set.Name] == nil {
		return Set{}, schema.Errorf(schema.KindConflict, "There are %d sets, which is the limit; remove one first.", len(all))
	}
	all[set.Name] = &set
	if why := all.Check(set.Name); why != "" {
		return Set{}, schema.Errorf(schema.KindInvalidRequest, "The set is invalid: %s", why)
	}
	definition, err := json.Marshal(set)
	if err != nil {
		return Set{}, schema.Errorf(schema.KindInternal, "The set cannot be encoded: %w", err)
	}
	row := settable.Set{Name: set.Name, Definition: definition, By: by, At: time.Now().UTC()}
	if revision == 0 {
		revision, err = k.table.Create(ctx, row)
	} else {
		revision, err = k.table.Replace(ctx, row, revision)
	}
	if err := s.stored(err); err != nil {
		return Set{}, err
	}
	return readSet(&row, revision)
}

// Remove removes a set that has the revision. Errors: [ErrSetChanged] where it has another;
// KindNotFound; KindConflict for one of the configuration, or that other sets or switches
// name; KindUnavailable where that cannot be stored.
func (s Sets) Remove(ctx context.Context, name string, revision uint64) error {
	if _, err := s.Get(name); err != nil {
		return err
	}
	if err := s.changeable(name); err != nil {
		return err
	}
	k := &s.c.sets
	k.mu.Lock()
	users := k.all().UsedBy(name)
	k.mu.Unlock()
	for _, sw := range s.c.Switches().List() {
		if sw.Set == name {
			return schema.Errorf(schema.KindConflict, "Tools of set %q are disabled by it; enable them first.", name)
		}
	}
	if len(users) > 0 {
		return schema.Errorf(schema.KindConflict, "Set %q is named by other sets: %s. Change those first.", name, strings.Join(users, ", "))
	}
	return s.stored(k.table.Remove(ctx, settable.Key(name), revision))
}

// changeable returns why the set cannot be changed over the API.
func (s Sets) changeable(name string) error {
	k := &s.c.sets
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.configured[name] != nil {
		return schema.Errorf(schema.KindConflict, "Set %q is in the configuration (front_door.sets); change it there.", name)
	}
	if k.table == nil {
		return schema.Errorf(schema.KindUnavailable, "Sets cannot be stored: %w", k.fault)
	}
	return nil
}

// stored makes of a write's end what callers get.
func (s Sets) stored(err error) error {
	switch {
	case errors.Is(err, bus.ErrConflict):
		return ErrSetChanged
	case err != nil:
		return notStored("change", err)
	}
	s.changed()
	return nil
}

// changed takes in that a set was changed, here or elsewhere.
func (s Sets) changed() {
	s.c.sets.forget()
	s.c.switched() // switches may name sets
}

// View returns what a set has now. The error is of KindNotFound, or of KindConflict for a
// set that cannot be composed any more, since a set that it names is gone.
func (s Sets) View(name string) (*SetView, error) {
	set, err := s.Get(name)
	if err != nil {
		return nil, err
	}
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	made, err := s.composeLocked(name)
	if err != nil {
		return nil, schema.Errorf(schema.KindConflict, "Set %q cannot be used: %w", name, err)
	}
	view := &SetView{Set: set, Tools: make([]SetTool, 0, len(made.Members)), LeftOut: made.LeftOut}
	for _, m := range made.Members {
		view.Tools = append(view.Tools, SetTool{Tool: s.c.toolLocked(s.c.servers[m.Tool.Server], m.Tool.Tool), Name: m.Name})
	}
	return view, nil
}

// Tool returns the tool of a set by its name there, or by what model providers are told
// instead ([format.NameAs]). The error is of KindNotFound, or as [Sets.View].
func (s Sets) Tool(set, name string) (Tool, error) {
	view, err := s.View(set)
	if err != nil {
		return Tool{}, err
	}
	for i := range view.Tools {
		t := &view.Tools[i]
		if t.Name == name || format.NameAs(t.Name, string(t.Server), t.Tool.Name) == name {
			return t.Tool, nil
		}
	}
	return Tool{}, noSetTool(set, name)
}

// Has reports whether a set has a tool. It has none where the set is not there, or cannot
// be composed.
func (s Sets) Has(set string, server schema.ServerID, tool string) bool {
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	made, err := s.composeLocked(set)
	return err == nil && slices.ContainsFunc(made.Members, func(m toolset.Member) bool { return m.Tool.Server == server && m.Tool.Name == tool })
}

// composeLocked composes a set of the tools that there are, once for each change of the
// fleet; c.mu is held.
func (s Sets) composeLocked(name string) (*toolset.Composition, error) {
	k := &s.c.sets
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made == nil {
		k.tools, k.made = s.everyToolLocked(), make(map[string]*toolset.Composition)
	}
	if made := k.made[name]; made != nil {
		return made, nil
	}
	made, err := k.all().Compose(name, k.tools)
	if err != nil {
		return nil, err
	}
	if len(made.LeftOut) > 0 {
		s.c.log.Warn("tools of a set have no name of their own and are left out; set names.conflict to prefer or rename", "set", name, "name", made.LeftOut[0].Name, "names", len(made.LeftOut))
	}
	k.made[name] = made
	return made, nil
}

// everyToolLocked returns all tools by server and name.
func (s Sets) everyToolLocked() []*toolset.Tool {
	var all []*toolset.Tool
	for _, of := range s.c.servers {
		if of.defs == nil {
			continue
		}
		for _, t := range of.defs.order {
			all = append(all, &toolset.Tool{Tool: t, RiskLevel: of.view.HighestRisk})
		}
	}
	slices.SortFunc(all, func(a, b *toolset.Tool) int {
		return cmp.Or(strings.Compare(string(a.Server), string(b.Server)), strings.Compare(a.Name, b.Name))
	})
	return all
}

// membersLocked returns the tools of a set, also those that have no name in it; nil where
// no set is named, or where it cannot be composed.
func (s Sets) membersLocked(set string) map[toolName]struct{} {
	if set == "" {
		return nil
	}
	made, err := s.composeLocked(set)
	if err != nil {
		s.c.log.Error("a set by which tools are disabled cannot be used; all tools that fit the rest of the switch are disabled", "set", set, "error", err)
		return nil
	}
	members := make(map[toolName]struct{}, len(made.Members))
	for _, m := range made.Members {
		members[toolName{m.Tool.Server, m.Tool.Name}] = struct{}{}
	}
	for _, clash := range made.LeftOut {
		for _, t := range clash.Tools {
			members[toolName{t.Server, t.Name}] = struct{}{}
		}
	}
	return members
}
