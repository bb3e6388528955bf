package ledger

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// allowed returns an error if an approval must not change from was to is.
func allowed(was, is *Approval) error {
	again := restarts(was, is)
	switch {
	case !is.State.known():
		return schema.Errorf(schema.KindInternal, "%q is not a state of an approval.", is.State)
	case was.State != is.State && !was.State.May(is.State) && !again:
		return schema.Errorf(schema.KindConflict, "Approval %s is already %s and cannot become %s.", was.ID, was.State, is.State)
	case was.State == is.State && was.State.Ended() && onlyNotified(was, is):
		return nil
	case !was.Told.Equal(is.Told):
		return schema.Errorf(schema.KindInternal, "The notification of approval %s can be recorded only once, after its end.", was.ID)
	case was.State == is.State && was.State.Ended():
		return schema.Errorf(schema.KindConflict, "Approval %s is already %s and can no longer be changed.", was.ID, was.State)
	case is.State == Running && was.State != Running && is.Runner == nil:
		return schema.Errorf(schema.KindInternal, "Approval %s cannot run without a runner.", was.ID)
	case !again && !slices.EqualFunc(was.Restarts, is.Restarts, sameRestart):
		return schema.Errorf(schema.KindInternal, "Restarts of approval %s are added one by one, before it runs.", was.ID)
	case !sameQuestion(was, is), !again && !sameRule(was, is):
		return schema.Errorf(schema.KindInternal, "The binding of approval %s cannot be changed.", was.ID)
	case was.Spent != nil && !reflect.DeepEqual(was.Spent, is.Spent), was.Runner != nil && !reflect.DeepEqual(was.Runner, is.Runner):
		return schema.Errorf(schema.KindConflict, "Approval %s has already been used.", was.ID)
	case !again && !bytes.Equal(was.Warrant, is.Warrant) && (len(was.Warrant) > 0 || was.State == is.State || is.State != Approved && is.State != Running):
		return schema.Errorf(schema.KindInternal, "The warrant of approval %s is created when it is approved, and cannot be changed.", was.ID)
	case was.State != Unknown && !was.Ended.IsZero() && !was.Ended.Equal(is.Ended), !is.State.Ended() && !is.Ended.IsZero():
		return schema.Errorf(schema.KindInternal, "The end time of approval %s cannot be changed.", was.ID)
	case was.Spent != nil && was.TokenHash != is.TokenHash:
		return schema.Errorf(schema.KindConflict, "The token of approval %s has already been used.", was.ID)
	case again && len(was.Warrant) > 0 && bytes.Equal(was.Warrant, is.Warrant):
		return schema.Errorf(schema.KindInternal, "Approval %s restarted, so its warrant is void.", was.ID)
	case !reflect.DeepEqual(was.Edited, is.Edited) && was.State != Pending:
		return schema.Errorf(schema.KindConflict, "Approval %s is already %s; its arguments can no longer be edited.", was.ID, was.State)
	case len(is.Decisions) < len(was.Decisions) || !slices.EqualFunc(was.Decisions, is.Decisions[:len(was.Decisions)], sameDecision):
		return schema.Errorf(schema.KindInternal, "Decisions of approval %s can be added, not changed.", was.ID)
	}
	return nil
}

// onlyNotified reports whether the only change is the time of the end notification.
func onlyNotified(was, is *Approval) bool {
	if !was.Told.IsZero() || is.Told.IsZero() {
		return false
	}
	same := is.Clone()
	same.Told = was.Told
	before, err := json.Marshal(was)
	if err != nil {
		return false
	}
	after, err := json.Marshal(same)
	return err == nil && bytes.Equal(before, after)
}

func sameQuestion(was, is *Approval) bool {
	return was.ID == is.ID && was.CallID == is.CallID && was.BindingDigest == is.BindingDigest &&
		is.Binding.Digest() == is.BindingDigest &&
		was.Created.Equal(is.Created) && was.ArgumentsSize == is.ArgumentsSize && was.Safe == is.Safe && slices.Equal(was.Groups, is.Groups) && was.Permission == is.Permission
}

func sameRule(was, is *Approval) bool {
	return bytes.Equal(was.Rule, is.Rule) && slices.Equal(was.Reasons, is.Reasons)
}

func sameDecision(a, b Decision) bool {
	return a.By == b.By && a.Owner == b.Owner && a.Kind == b.Kind && a.Reason == b.Reason && a.Channel == b.Channel &&
		a.At.Equal(b.At) && slices.Equal(a.Groups, b.Groups) && reflect.DeepEqual(a.Allow, b.Allow)
}
