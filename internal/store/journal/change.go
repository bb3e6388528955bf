package journal

import (
	"maps"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// allowed returns an error if a manifest must not change from was to is.
func allowed(was, is *Manifest) error {
	internal := func(why string) error {
		return schema.Errorf(schema.KindInternal, "Journal %s: %s.", was.ID, why)
	}
	switch {
	case was.State != is.State && !slices.Contains(moves(was.State), is.State):
		return schema.Errorf(schema.KindConflict, "Journal %s is %s and cannot become %s.", was.ID, was.State, is.State)
	case is.State == Running && was.State == Ended && was.Purged:
		return schema.Errorf(schema.KindConflict, "The calls of journal %s have been deleted; it cannot run again.", was.ID)
	case is.State == Ended && (is.Ending == "" || is.Ended.IsZero()):
		return internal("it cannot end without an outcome and a time")
	case is.Sealed.IsZero() && is.State != Receiving && is.State != Canceling:
		return internal("it has not been sealed")
	case was.ID != is.ID, was.Kind != is.Kind, was.Principal.Name != is.Principal.Name, was.Principal.Owner != is.Principal.Owner, was.Principal.Tenant != is.Principal.Tenant,
		!slices.Equal(was.Principal.Groups, is.Principal.Groups), !was.Created.Equal(is.Created), !was.Expires.Equal(is.Expires),
		was.Fingerprint != is.Fingerprint, was.Key != is.Key, was.CallbackURL != is.CallbackURL, !maps.Equal(was.Labels, is.Labels), was.LaneTenant != is.LaneTenant:
		return internal("its purpose cannot be changed")
	case is.Epoch < was.Epoch, is.Epoch == was.Epoch && is.Owner != was.Owner:
		return internal("its epoch can only increase, together with a change of its owner")
	case is.Calls < was.Calls, !was.Sealed.IsZero() && (is.Calls != was.Calls || !is.Sealed.Equal(was.Sealed)):
		return internal("its calls have already been counted")
	case is.Forgotten && (is.State != Ended || !is.Purged), is.Emptied && !is.Forgotten:
		return internal("its payloads are deleted in another order")
	case was.Purged && !is.Purged, was.Forgotten && !is.Forgotten, was.Emptied && !is.Emptied, was.Deleted && !is.Deleted:
		return internal("deleted records cannot be restored")
	}
	return nil
}
