package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Kind says what happened.
type Kind string

const (
	Asked    Kind = "asked"    // a call came in
	Held     Kind = "held"     // it waits for an approval
	Decided  Kind = "decided"  // a person approved or denied
	Edited   Kind = "edited"   // a person changed its arguments
	Extended Kind = "extended" // a person gave it more time
	Revoked  Kind = "revoked"  // a person took an approval back
	Expired  Kind = "expired"  // nobody said enough in time
	Spent    Kind = "spent"    // the confirmation token was spent
	Ran      Kind = "ran"      // it went to a worker
	Ended    Kind = "ended"    // its outcome is known, or known to be unknown

	Escalated Kind = "escalated" // more people were asked
	Restarted Kind = "restarted" // it must be approved again, under another rule
	Canceled  Kind = "canceled"  // the caller took it back before it ran

	DefinitionAccepted Kind = "definition-accepted" // an operator accepted the definition of a tool

	ActBegun Kind = "act-begun" // an operator is about to change something
	ActEnded Kind = "act-ended" // it was changed, or that was refused

	PermissionGiven   Kind = "permission-given"   // a person allowed calls like this one from now on
	PermissionUsed    Kind = "permission-used"    // a call ran under that
	PermissionRevoked Kind = "permission-revoked" // a person took that back

	GrantGiven    Kind = "grant-given"    // a person gave a program access
	GrantDenied   Kind = "grant-denied"   // a person denied it
	GrantRedeemed Kind = "grant-redeemed" // the program exchanged its code for tokens
	GrantRenewed  Kind = "grant-renewed"  // it exchanged its refresh token
	GrantEnded    Kind = "grant-ended"    // the access ended; the outcome says why
)

// Entry is what happened, as the caller of [Log.Append] tells it. It has no
// place for arguments and results; their digests name them.
type Entry struct {
	Kind Kind `json:"kind"`
	// At is when it happened; zero means now.
	At         time.Time         `json:"at"`
	CallID     schema.CallID     `json:"call_id,omitempty"`
	ApprovalID schema.ApprovalID `json:"approval_id,omitempty"`
	BatchID    schema.BatchID    `json:"batch_id,omitempty"`
	Tenant     schema.TenantID   `json:"tenant,omitempty"`
	// By is who did it and Owner who stands behind that name: the principal who
	// asked, the person who decided, the front door that ran it.
	By      string          `json:"by,omitempty"`
	Owner   string          `json:"owner,omitempty"`
	Channel string          `json:"channel,omitempty"`
	Server  schema.ServerID `json:"server,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Level   int             `json:"level,omitempty"`
	// PolicyVersion and Rule say what judged it.
	PolicyVersion string `json:"policy_version,omitempty"`
	Rule          string `json:"rule,omitempty"`
	// Outcome is the word for what came of it: approve, deny, succeeded …
	Outcome string `json:"outcome,omitempty"`
	// Reason is the policy's.
	Reason           string          `json:"reason,omitempty"`
	ArgumentsDigest  string          `json:"arguments_digest,omitempty"`
	DefinitionDigest string          `json:"definition_digest,omitempty"`
	BindingDigest    string          `json:"binding_digest,omitempty"`
	ResultDigest     string          `json:"result_digest,omitempty"`
	Worker           schema.WorkerID `json:"worker,omitempty"`
	Attempt          string          `json:"attempt,omitempty"`
	Error            string          `json:"error,omitempty"` // a kind of schema.Error
	// ReasonDigest names a person's reason, which stands with the approval.
	ReasonDigest string `json:"reason_digest,omitempty"`
	PermissionID string `json:"permission_id,omitempty"`
	// GrantID, Client, Resource and Scopes are of what a person gave a program, and Person is
	// whose access it is, where another one did something to it.
	GrantID  string `json:"grant_id,omitempty"`
	Client   string `json:"client,omitempty"`
	Resource string `json:"resource,omitempty"`
	Scopes   string `json:"scopes,omitempty"`
	Person   string `json:"person,omitempty"`
	// Operation, Path, RequestID and Status are of the request of an operator, Credential says
	// by what it was authenticated, and Before and After are digests of what was changed.
	Operation  string `json:"operation,omitempty"`
	Path       string `json:"path,omitempty"`
	RequestID  string `json:"request_id,omitempty"`
	Status     int    `json:"status,omitempty"`
	Credential string `json:"credential,omitempty"`
	Before     string `json:"before_digest,omitempty"`
	After      string `json:"after_digest,omitempty"`
	// Repaired says that the line was put here later, from the record of the
	// approval, because nobody could say whether it was written in time.
	Repaired bool `json:"repaired,omitempty"`
}

// Record is an entry in its place in a chain.
type Record struct {
	Version int    `json:"v"`
	Writer  string `json:"writer"`
	Seq     uint64 `json:"seq"`
	Prev    string `json:"prev"`
	Entry
	// Hash is of the record; it is the last field of the line.
	Hash string `json:"-"`
}

// Head is how far a chain has come.
type Head struct {
	Version int       `json:"v"`
	Writer  string    `json:"writer"`
	Seq     uint64    `json:"seq"`
	Hash    string    `json:"hash"`
	At      time.Time `json:"at"`
	// Closed says that the writer ended in order and nothing follows.
	Closed bool `json:"closed,omitempty"`
}

const (
	version   = 1
	hashField = `,"hash":"`
	hashTail  = len(hashField) + 2*sha256.Size + len(`"}`)
)

// start is the prev of the first record of a chain.
func start() string { return strings.Repeat("0", 2*sha256.Size) }

// appendLine appends the line of a record, with the newline that ends it, and
// fills in its hash.
func appendLine(dst []byte, r *Record) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return dst, fmt.Errorf("encoding an audit record: %w", err)
	}
	body = body[:len(body)-1] // without the brace
	sum := sha256.Sum256(body)
	r.Hash = hex.EncodeToString(sum[:])
	dst = append(dst, body...)
	dst = append(dst, hashField...)
	dst = append(dst, r.Hash...)
	return append(dst, "\"}\n"...), nil
}

// parseLine reads a line without its newline, and checks its form and hash.
func parseLine(line []byte) (*Record, error) {
	cut := len(line) - hashTail
	if cut < 1 || string(line[cut:cut+len(hashField)]) != hashField || string(line[len(line)-2:]) != `"}` {
		return nil, errors.New("it is not a valid record")
	}
	sum := sha256.Sum256(line[:cut])
	r := new(Record)
	if r.Hash = hex.EncodeToString(sum[:]); string(line[cut+len(hashField):len(line)-2]) != r.Hash {
		return nil, errors.New("its hash does not match its content")
	}
	hash := r.Hash
	if err := json.Unmarshal(append(line[:cut:cut], '}'), r); err != nil {
		return nil, errors.New("it is not JSON")
	}
	if r.Hash = hash; r.Version != version {
		return nil, fmt.Errorf("it has version %d, and this program reads version %d", r.Version, version)
	}
	return r, nil
}
