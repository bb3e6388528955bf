package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Requester is the requester of the call.
type Requester struct {
	Name string `json:"name" doc:"The principal that made the call." example:"billing-agent"`
	// Owner is the person or team behind the name. If empty, it is Name.
	Owner string `json:"owner,omitempty" doc:"The person or team behind the principal; absent if there is none but the principal."`
}

// Binding identifies the call that an approval is for; no other call may run under it.
type Binding struct {
	Tenant               schema.TenantID `json:"tenant,omitempty"`
	Requester            Requester       `json:"requester"`
	Server               schema.ServerID `json:"server"`
	Tool                 string          `json:"tool"`
	ToolDefinitionDigest string          `json:"tool_definition_digest"`
	ArgumentsDigest      string          `json:"arguments_digest"`
	PolicyVersion        string          `json:"policy_version"`
	// Level is the risk level, 1 to 3.
	Level int `json:"level"`
	// Deadline is the time after which the call must not run.
	Deadline   time.Time         `json:"deadline"`
	CallID     schema.CallID     `json:"call_id"`
	ApprovalID schema.ApprovalID `json:"approval_id"`
}

// Of reports whether the principal requested the call.
func (b *Binding) Of(who *schema.Principal) bool {
	return who.Same(&schema.Principal{Name: b.Requester.Name, Tenant: b.Tenant})
}

// requester returns the requester's id, which includes the tenant.
func (b *Binding) requester() schema.PrincipalID {
	return schema.PrincipalID{Tenant: b.Tenant.Stored(), Name: b.Requester.Name}
}

// bindingVersion starts the list, so that digests of other formats differ.
const bindingVersion = "callyard approval binding 1"

// Digest returns "sha256:" and the hex SHA-256 over this list of texts, each
// written as its length in bytes (8 bytes, big endian) and then its bytes:
//
//	"callyard approval binding 1", tenant, requester name, requester owner,
//	server, tool, tool definition digest, arguments digest, policy version,
//	level (decimal), deadline (decimal, nanoseconds since 1970, UTC; 0 for none),
//	call id, approval id
func (b *Binding) Digest() string {
	deadline := "0"
	if !b.Deadline.IsZero() {
		deadline = strconv.FormatInt(b.Deadline.UnixNano(), 10)
	}
	buf := make([]byte, 0, 768)
	for _, field := range [...]string{
		bindingVersion, string(b.Tenant), b.Requester.Name, b.Requester.Owner, string(b.Server), b.Tool, b.ToolDefinitionDigest,
		b.ArgumentsDigest, b.PolicyVersion, strconv.Itoa(b.Level), deadline, string(b.CallID), string(b.ApprovalID),
	} {
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(field)))
		buf = append(buf, field...)
	}
	sum := sha256.Sum256(buf)
	return "sha256:" + hex.EncodeToString(sum[:])
}
