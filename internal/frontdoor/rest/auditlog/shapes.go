package auditlog

import (
	"time"

	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/pkg/schema"
)

// AuditRecord is a record of the audit log. It contains digests of arguments, results and reasons,
// never their content.
type AuditRecord struct {
	Writer           string            `json:"writer" doc:"The process that wrote it; each writes a chain of its own." example:"frontdoor_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	Seq              uint64            `json:"seq" doc:"The position in the chain, from 1." example:"17"`
	Prev             string            `json:"prev" doc:"The SHA-256 of the record before it in the chain."`
	Hash             string            `json:"hash" doc:"The SHA-256 of this record."`
	Kind             audit.Kind        `json:"kind" doc:"The event: act-begun and act-ended for actions of operators; asked, held, decided, ran, ended and others for calls." example:"act-ended"`
	At               time.Time         `json:"at" doc:"The time of the event."`
	Tenant           schema.TenantID   `json:"tenant,omitempty" doc:"The tenant of the call or the acting principal; absent for the default one."`
	By               string            `json:"by,omitempty" doc:"The principal or person that acted." example:"ops"`
	Owner            string            `json:"owner,omitempty" doc:"The person or team behind the name in by."`
	Channel          string            `json:"channel,omitempty" doc:"How the person or program acted, such as web, api or slack." example:"api"`
	Credential       string            `json:"credential,omitempty" doc:"How the operator was authenticated."`
	Operation        string            `json:"operation,omitempty" doc:"The operation of an operator." example:"switch-tool"`
	Path             string            `json:"path,omitempty" doc:"The path of the request of an operator." example:"/servers/files/tools/write_file"`
	RequestID        string            `json:"request_id,omitempty" doc:"The id of the request of an operator, as in the header X-Request-ID of its answer."`
	Status           int               `json:"status,omitempty" doc:"The HTTP status of the answer to an operator." example:"200"`
	Before           string            `json:"before_digest,omitempty" doc:"The digest of the changed resource before the action; absent if it did not exist."`
	After            string            `json:"after_digest,omitempty" doc:"The digest of the changed resource after the action; absent if it was removed."`
	CallID           schema.CallID     `json:"call_id,omitempty" doc:"The id of the call."`
	ApprovalID       schema.ApprovalID `json:"approval_id,omitempty" doc:"The id of the approval."`
	BatchID          schema.BatchID    `json:"batch_id,omitempty" doc:"The batch of the call; absent if it is in none."`
	Server           schema.ServerID   `json:"server,omitempty" doc:"The id of the server."`
	Tool             string            `json:"tool,omitempty" doc:"The name of the tool."`
	Level            int               `json:"level,omitempty" doc:"The risk level."`
	PolicyVersion    string            `json:"policy_version,omitempty" doc:"The version of the policy that decided."`
	Rule             string            `json:"rule,omitempty" doc:"The rule of the policy that decided; absent if none did."`
	Outcome          string            `json:"outcome,omitempty" doc:"The outcome of the event, such as approve, deny or succeeded." example:"succeeded"`
	ReasonDigest     string            `json:"reason_digest,omitempty" doc:"The digest of a person's reason, which is stored with the approval."`
	ArgumentsDigest  string            `json:"arguments_digest,omitempty" doc:"The SHA-256 digest of the arguments."`
	DefinitionDigest string            `json:"definition_digest,omitempty" doc:"The SHA-256 digest of the definition of the tool."`
	BindingDigest    string            `json:"binding_digest,omitempty" doc:"The SHA-256 digest of what the approval is for: the caller, the tool and its definition, the arguments, the policy, the level, the deadline, the call and the approval."`
	Reason           string            `json:"reason,omitempty" doc:"The reason that the policy gives."`
	ResultDigest     string            `json:"result_digest,omitempty" doc:"The SHA-256 digest of the result."`
	Worker           schema.WorkerID   `json:"worker,omitempty" doc:"The worker to which the call was sent."`
	Attempt          string            `json:"attempt,omitempty" doc:"The attempt for which the confirmation token was spent."`
	Error            string            `json:"error,omitempty" doc:"The kind of the error."`
	PermissionID     string            `json:"permission_id,omitempty" doc:"The permission under which the call ran without an approval."`
	GrantID          string            `json:"grant_id,omitempty" doc:"The id of the access that a person gave to a program."`
	Client           string            `json:"client,omitempty" doc:"The program." example:"editor"`
	Resource         string            `json:"resource,omitempty" doc:"The resource for which its tokens are valid." example:"https://tools.example.com/mcp"`
	Scopes           string            `json:"scopes,omitempty" doc:"The scopes of the access, separated by spaces." example:"tools:read tools:call"`
	Person           string            `json:"person,omitempty" doc:"The person whose access it is, if somebody else acted on it."`
	Repaired         bool              `json:"repaired,omitempty" doc:"Whether the record was written later, from the record of the approval."`
}

// AuditRecordList is the answer to GET /audit.
type AuditRecordList struct {
	Records []AuditRecord `json:"records" nullable:"false" doc:"The records, newest first."`
	Next    string        `json:"next,omitempty" doc:"The cursor of the next page; absent on the last page." example:"412-0"`
}

// AuditFault is a place where the audit log differs from what was written.
type AuditFault struct {
	Writer   string          `json:"writer" doc:"The process whose chain has the fault."`
	Sequence uint64          `json:"sequence,omitempty" doc:"The sequence number of the message in the stream; absent if the fault is not in a message."`
	Seq      uint64          `json:"seq,omitempty" doc:"The position of the record in its chain; absent if it cannot be read."`
	Kind     audit.FaultKind `json:"kind" enum:"changed,gap,cut,added" doc:"changed: a record differs from what was written. gap: records are missing in the middle or at the start. cut: records are missing at the end. added: records were inserted."`
	What     string          `json:"what" doc:"The fault, in words."`
}

// AuditVerification is the answer to GET /audit/verification.
type AuditVerification struct {
	Intact    bool         `json:"intact" doc:"Whether no fault was found so far."`
	Complete  bool         `json:"complete" doc:"Whether all records that were stored at the time of the request are verified. If false, send the request again: it continues."`
	Heads     bool         `json:"heads_compared" doc:"Whether the ends of the chains were compared with their recorded heads, which detects records that are missing at the end. It needs the NATS permissions of this version."`
	Records   int          `json:"records" doc:"The number of verified records."`
	Writers   int          `json:"writers" doc:"The number of chains."`
	Trimmed   []string     `json:"trimmed,omitempty" nullable:"false" doc:"Writers whose first records were removed by age."`
	Faults    []AuditFault `json:"faults,omitempty" nullable:"false" doc:"The first 1000 faults."`
	Count     int          `json:"fault_count" doc:"The number of all faults."`
	BeganAt   time.Time    `json:"began_at" doc:"When verification began. It begins again with the first record every hour."`
	CheckedAt time.Time    `json:"checked_at" doc:"The time of the request that verified the last records."`
}

// recordOf returns the public view of a record.
func recordOf(r *audit.Record) AuditRecord {
	return AuditRecord{
		Writer: r.Writer, Seq: r.Seq, Prev: r.Prev, Hash: r.Hash, Kind: r.Kind, At: r.At, Tenant: r.Tenant, By: r.By, Owner: r.Owner, Channel: r.Channel, Credential: r.Credential,
		Operation: r.Operation, Path: r.Path, RequestID: r.RequestID, Status: r.Status, Before: r.Before, After: r.After,
		CallID: r.CallID, ApprovalID: r.ApprovalID, BatchID: r.BatchID, Server: r.Server, Tool: r.Tool, Level: r.Level, PolicyVersion: r.PolicyVersion, Rule: r.Rule,
		Outcome: r.Outcome, Reason: r.Reason, ReasonDigest: r.ReasonDigest, ArgumentsDigest: r.ArgumentsDigest, DefinitionDigest: r.DefinitionDigest, BindingDigest: r.BindingDigest, ResultDigest: r.ResultDigest,
		Worker: r.Worker, Attempt: r.Attempt, Error: r.Error, PermissionID: r.PermissionID, GrantID: r.GrantID, Client: r.Client, Resource: r.Resource, Scopes: r.Scopes, Person: r.Person, Repaired: r.Repaired,
	}
}

// verificationOf returns the public view of a verification.
func verificationOf(v *audit.Verified, now time.Time) AuditVerification {
	answer := AuditVerification{Intact: v.OK(), Complete: v.Complete, Heads: v.Heads, Records: v.Records, Writers: v.Writers, Trimmed: v.Trimmed, Count: v.Count, BeganAt: v.Began.UTC(), CheckedAt: now.UTC()}
	for _, f := range v.Faults {
		answer.Faults = append(answer.Faults, AuditFault{f.Writer, f.Sequence, f.Seq, f.Kind, f.What})
	}
	return answer
}
