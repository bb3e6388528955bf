package warrant

import (
	"crypto/ed25519"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Leeway is how far the clock of a worker may be behind or ahead of the one that
// signed before a deadline is taken for over too early.
const Leeway = 30 * time.Second

// Trust is whose warrants count, and for what. The zero value and nil trust
// nobody. It must not be changed once it is in use; then it is safe for
// concurrent use.
type Trust struct {
	keys map[string]*trusted
}

type trusted struct {
	key  ed25519.PublicKey
	may  []How
	made *made // what was signed with the key in this process, where it is known
}

// Add trusts the key for the ways named, in addition to those it is trusted for already.
func (t *Trust) Add(key ed25519.PublicKey, may ...How) {
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
func (t *Trust) Keys(how How) (ids []string) {
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

// Empty says that no warrant can ever count.
func (t *Trust) Empty() bool { return t == nil || len(t.keys) == 0 }

// Use is the call that is about to run, as the one that runs it sees it.
type Use struct {
	ApprovalID schema.ApprovalID
	CallID     schema.CallID
	Server     schema.ServerID
	Tool       string
	// Definition is the tool's definition as the server sent it.
	Definition []byte
	// Arguments are the very bytes that will be sent.
	Arguments []byte
	Requester string
	Owner     string
	// Level is the risk level by the policy of the one that runs it, and Rule says
	// whose approval it needs by that policy.
	Level int
	Rule  *risk.Approval
}

// Admit says whether the warrant lets the call run at the time now. It returns
// what the warrant claims, or a refusal of KindForbidden that names what is wrong
// and never a value.
func (t *Trust) Admit(text []byte, u *Use, now time.Time) (*Claims, *schema.Error) {
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
	if !c.meets(u) {
		return nil, refuse("its approval does not meet the requirements of this worker's policy for this call (groups, number of approvals, fresh sign-in, reason or channel); send the call again to have it approved under the policy in force")
	}
	if now.Add(-Leeway).UnixMilli() > c.Deadline {
		return nil, refuse("its warrant has expired: the deadline has passed")
	}
	return c, nil
}

// signed says whether what comes before end was signed with the key.
func (by *trusted) signed(text []byte, end int) bool {
	prefix := domain
	if text[0] == version1 {
		prefix = domain1
	}
	signed := append(make([]byte, 0, len(prefix)+end), prefix...)
	return ed25519.Verify(by.key, append(signed, text[:end]...), text[end:])
}

// differs names the first field that is not as the warrant claims.
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
	case c.Level < u.Level:
		return "risk level"
	case u.Rule.Requirement().By != risk.ByCaller && c.How == Caller:
		// Where people are asked the caller's own confirmation is no approval. The other
		// way round somebody else approved, which is more than was asked for.
		return "way of deciding"
	}
	return ""
}

// meets says whether the approval satisfied what the call needs where it runs. A
// warrant of version 1 does not say what it satisfied: its approver counted, as all
// did in the release before.
func (c *Claims) meets(u *Use) bool {
	return c.Requirement == "" || risk.MeetsRequirement(c.Requirement, u.Rule.Requirement())
}

func refuse(why string) *schema.Error {
	return schema.Errorf(schema.KindForbidden, "The call requires approval and was not run: %s.", why)
}
