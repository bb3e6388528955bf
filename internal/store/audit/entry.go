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

// Kind is the kind of an event.
type Kind string

const (
	Asked    Kind = "asked"    // a call came in
	Held     Kind = "held"     // it waits for an approval
	Decided  Kind = "decided"  // a person approved or denied
	Edited   Kind = "edited"   // a person changed its arguments
	Extended Kind = "extended" // a person gave it more time
	Revoked  Kind = "revoked"  // a person revoked an approval
	Expired  Kind = "expired"  // it did not get the required decisions in time
	Spent    Kind = "spent"    // the confirmation token was spent
	Ran      Kind = "ran"      // it was sent to a worker
	Ended    Kind = "ended"    // its outcome is known, or known to be unknown

	Escalated Kind = "escalated" // more people were asked
	Restarted Kind = "restarted" // it must be approved again, under another rule
	Canceled  Kind = "canceled"  // the caller canceled it before it ran

	DefinitionAccepted Kind = "definition-accepted" // an operator accepted the definition of a tool

	ActBegun Kind = "act-begun" // an operator is about to change something
	ActEnded Kind = "act-ended" // the change was made, or refused

	PermissionGiven   Kind = "permission-given"   // a person allowed calls like this one from now on
	PermissionUsed    Kind = "permission-used"    // a call ran under a permission
	PermissionRevoked Kind = "permission-revoked" // a person revoked a permission

	GrantGiven    Kind = "grant-given"    // a person granted a program access
	GrantDenied   Kind = "grant-denied"   // a person denied a program access
	GrantRedeemed Kind = "grant-redeemed" // the program exchanged its code for tokens
	GrantRenewed  Kind = "grant-renewed"  // the program exchanged its refresh token
	GrantEnded    Kind = "grant-ended"    // the access ended; the outcome is the reason
)

// Entry is an event, as passed to [Log.Append]. It cannot contain arguments and results, only their
// digests.
type Entry struct {
	Kind Kind `json:"kind"`
	// At is the time of the event; zero means now.
	At         time.Time         `json:"at"`
	CallID     schema.CallID     `json:"call_id,omitempty"`
	ApprovalID schema.ApprovalID `json:"approval_id,omitempty"`
	BatchID    schema.BatchID    `json:"batch_id,omitempty"`
	Tenant     schema.TenantID   `json:"tenant,omitempty"`
	// By is the actor: the principal that requested the call, the person who decided, the front
	// door that ran it. Owner is the person or service behind that name.
	By      string          `json:"by,omitempty"`
	Owner   string          `json:"owner,omitempty"`
	Channel string          `json:"channel,omitempty"`
	Server  schema.ServerID `json:"server,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Level   int             `json:"level,omitempty"`
	// PolicyVersion and Rule identify the policy that decided.
	PolicyVersion string `json:"policy_version,omitempty"`
	Rule          string `json:"rule,omitempty"`
	// Outcome is the name of the outcome: approve, deny, succeeded …
	Outcome string `json:"outcome,omitempty"`
	// Reason is the policy's reason.
	Reason           string          `json:"reason,omitempty"`
	ArgumentsDigest  string          `json:"arguments_digest,omitempty"`
	DefinitionDigest string          `json:"definition_digest,omitempty"`
	BindingDigest    string          `json:"binding_digest,omitempty"`
	ResultDigest     string          `json:"result_digest,omitempty"`
	Worker           schema.WorkerID `json:"worker,omitempty"`
	Attempt          string          `json:"attempt,omitempty"`
	Error            string          `json:"error,omitempty"` // a kind of schema.Error
	// ReasonDigest is the digest of a person's reason, which is stored with the approval.
	ReasonDigest string `json:"reason_digest,omitempty"`
	PermissionID string `json:"permission_id,omitempty"`
	// GrantID, Client, Resource and Scopes describe the access that a person granted to a program.
	// Person is the owner of the access if another person acted on it.
	GrantID  string `json:"grant_id,omitempty"`
	Client   string `json:"client,omitempty"`
	Resource string `json:"resource,omitempty"`
	Scopes   string `json:"scopes,omitempty"`
	Person   string `json:"person,omitempty"`
	// Operation, Path, RequestID and Status describe an operator's request. Credential is the kind
	// of its credential. Before and After are digests of the changed data.
	Operation  string `json:"operation,omitempty"`
	Path       string `json:"path,omitempty"`
	RequestID  string `json:"request_id,omitempty"`
	Status     int    `json:"status,omitempty"`
	Credential string `json:"credential,omitempty"`
	Before     string `json:"before_digest,omitempty"`
	After      string `json:"after_digest,omitempty"`
	// Repaired is set if the line was added later, from the record of the approval, because it
	// was unknown whether it had been written in time.
	Repaired bool `json:"repaired,omitempty"`
}

// Record is an entry with its position in a chain.
type Record struct {
	Version int    `json:"v"`
	Writer  string `json:"writer"`
	Seq     uint64 `json:"seq"`
	Prev    string `json:"prev"`
	Entry
	// Hash is the hash of the record, the last field of the line.
	Hash string `json:"-"`
}

// Head is the last known position of a chain.
type Head struct {
	Version int       `json:"v"`
	Writer  string    `json:"writer"`
	Seq     uint64    `json:"seq"`
	Hash    string    `json:"hash"`
	At      time.Time `json:"at"`
	// Closed is set if the writer shut down cleanly and no record follows.
	Closed bool `json:"closed,omitempty"`
}

const (
	version   = 1
	hashField = `,"hash":"`
	hashTail  = len(hashField) + 2*sha256.Size + len(`"}`)
)

// start returns the prev of the first record of a chain.
func start() string { return strings.Repeat("0", 2*sha256.Size) }

// appendLine appends the line of a record, including its newline, and sets its hash.
func appendLine(dst []byte, r *Record) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return dst, fmt.Errorf("encoding an audit record: %w", err)
	}
	body = body[:len(body)-1] // without the closing brace
	sum := sha256.Sum256(body)
	r.Hash = hex.EncodeToString(sum[:])
	dst = append(dst, body...)
	dst = append(dst, hashField...)
	dst = append(dst, r.Hash...)
	return append(dst, "\"}\n"...), nil
}

// parseLine decodes a line without its newline, and checks its format and hash.
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
