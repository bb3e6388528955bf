package warrant

import (
	"crypto/ed25519"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Leeway is the clock skew between a worker and the signer that is tolerated, so that a deadline
// is not considered passed too early.
const Leeway = 30 * time.Second

// Trust holds the keys whose warrants are accepted, and the ways of deciding each may vouch for.
// The zero value and nil trust no key. It must not be changed once it is in use; then it is safe
// for concurrent use.
type Trust struct {
	keys map[string]*trusted
}

type trusted struct {
	key  ed25519.PublicKey
	may  []Decider
	made *recentWarrants // warrants signed with the key in this process, if known
}

// Add trusts the key for the given ways of deciding, in addition to those already trusted.
func (t *Trust) Add(key ed25519.PublicKey, may ...Decider) {
	if t.keys == nil {
		t.keys = make(map[string]*trusted)
	}
	id := KeyID(key)
	if t.keys[id] == nil {
		t.keys[id] = &trusted{key: key}
	}
	for _, how := range may {
		if !slices.Contains(t.keys[id].may, how) {
			t.keys[id].may = append(t.keys[id].may, how)
		}
	}
}

// AddSigner trusts a signer of this process for everything that it signs.
func (t *Trust) AddSigner(s *Signer) {
	t.Add(s.key.Public().(ed25519.PublicKey), s.may...)
	t.keys[s.id].made = s.made
}

// Keys returns the ids of the keys that are trusted for this way of deciding, sorted.
func (t *Trust) Keys(how Decider) (ids []string) {
	if t == nil {
		return nil
	}
	for id, by := range t.keys {
		if slices.Contains(by.may, how) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Empty reports whether no warrant can ever be accepted.
func (t *Trust) Empty() bool { return t == nil || len(t.keys) == 0 }

// Use describes the call that is about to run, from the runner's point of view.
type Use struct {
	ApprovalID schema.ApprovalID
	CallID     schema.CallID
	Server     schema.ServerID
	Tool       string
	// Definition is the tool's definition as the server sent it.
	Definition []byte
	// Arguments are the exact bytes that will be sent.
	Arguments []byte
	Requester string
	Owner     string
	// Level is the risk level under the runner's policy. Rule is the approval rule of that
	// policy.
	Level int
	Rule  *risk.Approval
}

// Admit checks whether the warrant lets the call run at the time now. It returns the claims of
// the warrant, or a KindForbidden error that names the field at fault, but never a value.
func (t *Trust) Admit(text []byte, u *Use, now time.Time) (*Claims, *schema.Error) {
	if u.ApprovalID == "" {
		return nil, refuse("the policy of this worker requires an approval, and the policy of the front door did not. " + otherPolicy)
	}
	if t.Empty() {
		return nil, refuse("no warrant keys are trusted here, so approvals cannot be verified: set warrants.people_keys and warrants.caller_keys to the public keys of the approver and of the front doors (callyard keys warrant creates a pair)")
	}
	if len(text) == 0 {
		return nil, refuse("it has no warrant, the signed proof of its approval: set warrants.key_file for the front doors and the approver")
	}
	c, end, err := parse(text)
	if err != nil {
		return nil, refuse("its warrant cannot be decoded")
	}
	by := t.keys[c.KeyID]
	if by == nil {
		return nil, refuse("its warrant is signed with a key that is not trusted here")
	}
	if !by.made.take(text) && !by.signed(text, end) {
		return nil, refuse("the signature of its warrant is invalid")
	}
	if !slices.Contains(by.may, c.How) {
		return nil, refuse("its warrant is signed with a key that is not trusted here for this kind of decision (" + string(c.How) + "); warrants." + string(c.How) + "_keys lists the trusted keys")
	}
	if differs := c.differs(u); differs != "" {
		return nil, refuse("its warrant is for another call, which differs in this field: " + differs)
	}
	if lacks := c.lacks(u); lacks != "" {
		return nil, refuse(lacks + ". " + otherPolicy)
	}
	if now.Add(-Leeway).UnixMilli() > c.Deadline {
		return nil, refuse("its warrant has expired: the deadline has passed")
	}
	return c, nil
}

// signed reports whether the text before end was signed with the key.
func (by *trusted) signed(text []byte, end int) bool {
	prefix := domain
	if text[0] == version1 {
		prefix = domain1
	}
	signed := append(make([]byte, 0, len(prefix)+end), prefix...)
	return ed25519.Verify(by.key, append(signed, text[:end]...), text[end:])
}

// differs returns the name of the first field that does not match the claims.
func (c *Claims) differs(u *Use) string {
	switch {
	case c.ApprovalID != u.ApprovalID:
		return "approval"
	case c.CallID != u.CallID:
		return "call id"
	case c.Server != u.Server:
		return "server"
	case c.Tool != u.Tool:
		return "tool"
	case c.Requester != u.Requester:
		return "requester"
	case c.Owner != u.Owner:
		return "owner of the requester"
	case len(u.Definition) == 0 || c.ToolDefinitionDigest != schema.Digest(u.Definition):
		return "definition of the tool"
	case c.ArgumentsDigest != schema.Digest(u.Arguments):
		return "arguments"
	}
	return ""
}

// otherPolicy is the advice for a refusal that is not due to the warrant, but to a policy that is
// stricter than the one under which the call was held or sent.
const otherPolicy = "If the policy has changed just now, send the call again. Otherwise give the front door, the approver and this worker the same policy"

// lacks returns what the approval lacks under the runner's policy, or "" if it is sufficient. A
// warrant of version 1 does not contain the satisfied requirement; its approver counts, as in the
// previous release.
func (c *Claims) lacks(u *Use) string {
	need := u.Rule.Requirement()
	switch {
	case c.Level < u.Level:
		return "the policy of this worker assesses it at a higher risk level than the one that was approved"
	case need.By != risk.ByCaller && c.How == Caller:
		// If people must decide, the caller's own confirmation is no approval. If the caller must
		// confirm, the approval of another person is sufficient: it is more than required.
		return "its caller confirmed it, and the policy of this worker requires that other people approve it"
	case c.Requirement != "" && !risk.MeetsRequirement(c.Requirement, need):
		return "its approval does not meet the requirements of this worker's policy for this call (groups, number of approvals, fresh sign-in, reason or channel)"
	}
	return ""
}

func refuse(why string) *schema.Error {
	return schema.Errorf(schema.KindForbidden, "The call requires approval and was not run: %s.", why)
}
