package state

import (
	"context"
	"maps"
	"slices"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/schema"
)

// step is a change and the function that makes it. do is nil if the change cannot be made.
type step struct {
	StateChange
	do func(ctx context.Context) error
}

// plan returns the steps from the state now to that of the file. sets are the sets of the state, as
// returned by [handlers.now]: a step applies only to the revision that the request was compared
// with.
func (h *handlers) plan(file, now *FabricState, sets []catalog.Set, by *schema.Principal) (all []step) {
	if file.Sets != nil {
		all = append(all, h.planSets(partSets, ofDefault(file.Sets), sets, by.Name)...)
	}
	if file.TenantSets != nil {
		all = append(all, h.planSets(partTenantSets, file.TenantSets, sets, by.Name)...)
	}
	if file.Switches != nil {
		all = append(all, h.planSwitches(file.Switches, now.Switches, by.Name)...)
	}
	if file.Pins != nil {
		all = append(all, h.planPins(file.Pins, now.Pins, by)...)
	}
	if file.Policy != nil && file.Policy.Version != now.Policy.Version {
		all = append(all, step{StateChange: StateChange{Part: partPolicy, Name: file.Policy.Version, Action: differs, Note: "The front door uses version " + now.Policy.Version + ". The policy is a file of each process: change it there."}})
	}
	if file.Keys != nil {
		all = append(all, planKeys(file.Keys, now.Keys)...)
	}
	return all
}

// ofDefault returns the sets of the installation as sets of the default tenant.
func ofDefault(sets []toolset.Set) []TenantSet {
	all := make([]TenantSet, len(sets))
	for i := range sets {
		all[i] = TenantSet{schema.DefaultTenant, sets[i]}
	}
	return all
}

// planSets plans the sets of the installation, or those of all other tenants.
func (h *handlers) planSets(part string, file []TenantSet, had []catalog.Set, by string) (all []step) {
	sets := h.o.Catalog.Sets()
	now := make(map[string]catalog.Set)
	name := func(tenant schema.TenantID, set string) string {
		if part == partSets {
			return set
		}
		return string(tenant) + "/" + set
	}
	for _, set := range had {
		if set.Tenant.Is(schema.DefaultTenant) == (part == partSets) {
			now[name(set.Tenant, set.Name)] = set
		}
	}
	for _, one := range file {
		at := name(one.Tenant, one.Set.Name)
		had, known := now[at]
		delete(now, at)
		s := step{StateChange: StateChange{Part: part, Name: at, Action: add}}
		switch {
		case known && equalJSON(had.Set, one.Set):
			continue
		case known && had.Configured:
			s.Action, s.Note = skip, "A set of the configuration has this name."
		case h.o.Tenants.Check(one.Tenant) != nil: // no principal could use or see the set
			s.Action, s.Note = skip, "The tenant is not configured here. Add it to the section tenants, restart the front doors, and import the file again."
		default:
			if known {
				s.Action = change
			}
			s.do = func(ctx context.Context) error {
				_, err := sets.Restore(ctx, one.Tenant, one.Set, had.Revision, by)
				return err
			}
		}
		all = append(all, s)
	}
	for _, at := range slices.Sorted(maps.Keys(now)) {
		if set := now[at]; !set.Configured {
			all = append(all, step{StateChange{Part: part, Name: at, Action: remove}, func(ctx context.Context) error {
				return sets.Remove(ctx, set.Tenant, set.Name, set.Revision)
			}})
		}
	}
	return all
}

func (h *handlers) planSwitches(file, now []DisabledTools, by string) (all []step) {
	had := make(map[DisabledTools]string)
	for _, sw := range now {
		had[sw.where()] = sw.Reason
	}
	set := func(sw DisabledTools, enabled bool) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			if sw.Wide {
				_, _, err = h.o.Catalog.Switches().Many(ctx, sw.Server, sw.Tool, sw.Set, enabled, sw.Reason, by)
			} else {
				_, err = h.o.Catalog.Switch(ctx, sw.Server, sw.Tool, enabled, sw.Reason, by)
			}
			return err
		}
	}
	for _, sw := range file {
		reason, known := had[sw.where()]
		delete(had, sw.where())
		s := step{StateChange{Part: partSwitches, Name: sw.name(), Action: add, Note: "Disables it."}, set(sw, false)}
		if known {
			if reason == sw.Reason {
				continue
			}
			s.Action, s.Note = change, "Another reason."
		}
		all = append(all, s)
	}
	for sw := range had {
		all = append(all, step{StateChange{Part: partSwitches, Name: sw.name(), Action: remove, Note: "Enables it."}, set(sw, true)})
	}
	return all
}

// planPins plans the acceptance of definitions that the servers offer now. Only members of the
// groups that can accept definitions may do so, as in the other operations.
func (h *handlers) planPins(file, now []AcceptedDigest, by *schema.Principal) (all []step) {
	servers := make(map[schema.ServerID]map[string]catalog.PinnedTool)
	had := make(map[AcceptedDigest]bool, len(now))
	for _, pin := range now {
		had[pin] = true
	}
	for _, pin := range file {
		tools, asked := servers[pin.Server]
		s := step{StateChange: StateChange{Part: partPins, Name: pin.name(), Action: add, Note: "Accepts " + pin.Digest + "."}}
		if !asked {
			tools = make(map[string]catalog.PinnedTool)
			servers[pin.Server] = tools
			if pins, err := h.o.Catalog.Pins(pin.Server); err == nil {
				for _, t := range pins.Tools {
					tools[t.Name] = t
				}
			}
		}
		t, known := tools[pin.Tool]
		switch {
		case had[pin]:
			continue
		case !known:
			s.Action, s.Note = skip, "The tool is currently unknown, or its server has no pin."
		case t.Digest != pin.Digest:
			s.Action, s.Note = skip, "The server offers another definition now: review that one."
		case len(h.o.AcceptGroups) > 0 && !slices.ContainsFunc(by.Groups, func(g string) bool { return slices.Contains(h.o.AcceptGroups, g) }):
			s.Action, s.Note = skip, "You are in none of the groups that can accept definitions (front_door.accept_groups)."
		default:
			if t.Accepted != nil {
				s.Action = change
			}
			s.do = func(ctx context.Context) error {
				one := []catalog.Acceptance{{Tool: pin.Tool, Digest: pin.Digest}}
				if err := h.o.Catalog.Operator().Accept(ctx, pin.Server, one, by.Name); err != nil || h.o.Accepted == nil {
					return err
				}
				return h.o.Accepted(ctx, *by, pin.Server, one)
			}
		}
		all = append(all, s)
	}
	return all
}

// planKeys compares keys by name. It creates none, because files contain no secrets.
func planKeys(file, now []ExportedKey) (all []step) {
	had := make(map[string]ExportedKey)
	for _, k := range now {
		had[k.Name] = k
	}
	note := func(name, why string) {
		all = append(all, step{StateChange: StateChange{Part: partKeys, Name: name, Action: differs, Note: why}})
	}
	for _, k := range file {
		here, known := had[k.Name]
		delete(had, k.Name)
		k.ID = here.ID // IDs differ between installations
		switch {
		case !known:
			note(k.Name, "There is no such key here. A file has no secrets: make the key with POST /keys.")
		case !equalJSON(k, here):
			note(k.Name, "The key is another here: owner, tenant, groups, scopes, tools, note, origin or end differ.")
		}
	}
	for name := range had {
		note(name, "The key is not in the file. It stays.")
	}
	return all
}
