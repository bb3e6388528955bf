package bus

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// This file defines every subject, queue group and bucket of Callyard. WORKER, ROUTER and SERVER
// stand for a [Token].
//
//	subject                          kind   publisher → listener: message
//	callyard.v1.call.WORKER          core   router → that worker: calls, one or more in a message
//	callyard.v1.serve.SERVER         core   router → any worker of the server (queue group "w"), the fallback
//	callyard.v1.reply.ROUTER.MSG     core   worker → that router: results, errors, progress, parts; MSG is random
//	callyard.v1.ctl.WORKER           core   router → that worker: cancel, grants for parts; empty: a probe, answered on reply
//	callyard.v1.worker.WORKER        core   worker → routers: announcement, each second and on change
//	callyard.v1.router.ROUTER        core   router → routers: heartbeat, so that they can share slots; workers use it to detect whether any router is reachable
//	callyard.v1.approver.APPROVER    core   approver → routers: heartbeat, with its effective configuration
//	callyard.v1.hello                core   router → workers: request for an announcement now
//	callyard.v1.cancel               core   front door → routers: the id of a call to cancel
//	callyard.v1.want.SERVER          core   front door → workers of the server: resources whose changes a client subscribed to
//	callyard.v1.updated.SERVER       core   worker → front doors: resources that have changed
//	callyard_switches                KV     disabled tools, with the reason; written by front doors
//	callyard_servers                 KV     servers added over the API; written by front doors
//	callyard_pins                    KV     accepted definitions of tools, one row for each server; changed by compare-and-set; written by front doors
//	callyard_credentials             KV     credentials of people at MCP servers, encrypted; changed by compare-and-set; written by front doors and approvers
//	callyard_sessions                KV     sessions of MCP clients, by the digest of their ids; expire after 24 h; written by front doors
//
//	subject                                  stream            content of a message
//	callyard.v1.approval.ID.open             callyard_ledger   initial state of the approval: record in a header, then definition and arguments
//	callyard.v1.approval.ID.state            callyard_ledger   current record; each change expects the last one (compare-and-set)
//	callyard.v1.part.ID.KIND.NAME.N          callyard_ledger   part N of bytes that do not fit in a record; NAME is derived from their digest
//	callyard.v1.held.ID.KIND.NAME.N          callyard_held     part N of large arguments of a call that waits; removed when it has ended
//	callyard.v1.audit.WRITER                 callyard_audit    lines of the audit chain of one writer; each expects the last one
//	callyard.v1.delivery.ID.state            callyard_deliveries   state of a webhook's delivery; each change expects the last one; empty: it has ended
//	callyard.v1.delivery.ID.body             callyard_deliveries   the event's bytes, as each attempt sends them
//	callyard_audit_heads                     KV                position of the last line of each audit chain; written by the chain's writer
//	callyard_permissions                     KV                standing permissions; changed by compare-and-set
//	callyard_slack_people                    KV                the principal of each Slack account; written by the approver, like the other Slack tables
//	callyard_slack_codes                     KV                codes that connect a person in Slack; expire after 15 min
//	callyard_slack_messages                  KV                the Slack message that shows an approval; changed by compare-and-set
//	callyard_slack_once                      KV                accepted requests of Slack; expire after 15 min
//	callyard_notices                         KV                approval events that were sent to each receiver
//	callyard.v1.notice.ID.state, .body       callyard_notice_deliveries   like callyard.v1.delivery, for the approver's events
//	callyard.v1.record.HOUR.SLOT             callyard_executions   records of calls that were admitted within one slot of 10 s, from any front door
//	callyard.v1.usage.HOUR                   callyard_usage    totals of the records of one hour, in hours since 1970; changed by compare-and-set
//	callyard.v1.usage.cursor                 callyard_usage    the last message of callyard_executions that is included in the totals; changed by compare-and-set
//	callyard.v1.journal.ID.manifest          callyard_journals metadata of a journal of durable calls; changed by compare-and-set
//	callyard.v1.journal.ID.lease             callyard_journals owner of the journal; expires unless it is renewed
//	callyard.v1.journal.secret.lease         callyard_journals the secret that ids of durable calls are made with; the first writer wins
//	callyard.v1.journal.ID.calls             callyard_calls    accepted calls, many in a message; each message expects the last one
//	callyard.v1.journal.ID.intents           callyard_intents  calls about to be sent, in the same form
//	callyard.v1.journal.ID.results           callyard_results  results, in the same form; expire by age
//	callyard.v1.object.ID.NAME.N             callyard_objects  part N of bytes that are too large for a record of journal ID
//	callyard.v1.key.HASH                     callyard_keys     the request of an idempotency key; the first writer wins
//	callyard.v1.datakey.TENANT               callyard_data_keys   the data key of a tenant, encrypted, or a mark that it was destroyed; the first writer wins
//	callyard.v1.changed.ID.LOG               core              front door → front doors: the log of the journal has a new message
//
// Front doors and the approver publish these, workers do not. All streams except
// callyard_audit, callyard_executions, callyard_data_keys, callyard_calls, callyard_intents and
// callyard_results keep one message per subject.
const (
	prefix          = "callyard.v1."
	subjectCall     = prefix + "call."
	subjectServe    = prefix + "serve."
	subjectReply    = prefix + "reply."
	subjectControl  = prefix + "ctl."
	subjectWorker   = prefix + "worker."
	subjectRouter   = prefix + "router."
	subjectApprover = prefix + "approver."
	subjectHello    = prefix + "hello"
	subjectCancel   = prefix + "cancel"
	subjectWant     = prefix + "want."
	subjectUpdated  = prefix + "updated."

	queueWorkers = "w"

	BucketSwitches = "callyard_switches"
	BucketServers  = "callyard_servers"
	BucketSessions = "callyard_sessions"
	BucketPins     = "callyard_pins"
	BucketSets     = "callyard_sets"
	// BucketCredentials holds the credentials of people at MCP servers, encrypted.
	BucketCredentials = "callyard_credentials" //nolint:gosec // a name
	BucketAPIKeys     = "callyard_api_keys"    //nolint:gosec // a name
	BucketKeyUses     = "callyard_key_uses"
	// BucketOAuthKeys and BucketOAuthGrants hold the keys of the authorization server and the
	// grants of people, encrypted.
	BucketOAuthKeys   = "callyard_oauth_keys"
	BucketOAuthGrants = "callyard_oauth_grants"
	// BucketOAuthEnded holds the grants that ended while access tokens of them were valid.
	// BucketOAuthOnce holds the assertions with which clients authenticated.
	BucketOAuthEnded = "callyard_oauth_ended"
	BucketOAuthOnce  = "callyard_oauth_once"

	SubjectApproval = prefix + "approval."
	SubjectPart     = prefix + "part."
	SubjectHeld     = prefix + "held."
	SubjectAudit    = prefix + "audit."
	SubjectRecord   = prefix + "record."
	SubjectUsage    = prefix + "usage."
	SubjectDelivery = prefix + "delivery."
	SubjectNotice   = prefix + "notice."

	SubjectJournal = prefix + "journal."
	SubjectObject  = prefix + "object."
	SubjectKey     = prefix + "key."
	SubjectDataKey = prefix + "datakey."
	SubjectChanged = prefix + "changed."

	SuffixManifest = ".manifest"
	SuffixLease    = ".lease"
	SuffixCalls    = ".calls"
	SuffixIntents  = ".intents"
	SuffixResults  = ".results"

	StreamJournals = "callyard_journals"
	StreamCalls    = "callyard_calls"
	StreamIntents  = "callyard_intents"
	StreamResults  = "callyard_results"
	StreamObjects  = "callyard_objects"
	StreamKeys     = "callyard_keys"

	SuffixOpen  = ".open"
	SuffixState = ".state"
	SuffixBody  = ".body"

	StreamLedger     = "callyard_ledger"
	StreamHeld       = "callyard_held"
	StreamAudit      = "callyard_audit"
	BucketAuditHeads = "callyard_audit_heads"

	StreamDeliveries = "callyard_deliveries"

	StreamNoticeDeliveries = "callyard_notice_deliveries"

	BucketPermissions = "callyard_permissions"

	StreamExecutions = "callyard_executions"

	// StreamDataKeys holds the keys that encrypt the payloads of tenants.
	StreamDataKeys = "callyard_data_keys"

	StreamUsage = "callyard_usage"

	// ProbeToken replaces an id in [StreamSpec.Probe]. No id has this form, and the message is
	// never read.
	ProbeToken = "write-probe"

	// headerRecord is the header for [Message.Record].
	headerRecord = "Callyard-Record"
)

// The tables of the approver.
const (
	BucketSlackPeople   = "callyard_slack_people"
	BucketSlackCodes    = "callyard_slack_codes"
	BucketSlackMessages = "callyard_slack_messages"
	BucketSlackOnce     = "callyard_slack_once"
	BucketNotices       = "callyard_notices"
)

// JournalStreams returns the streams of durable calls, which are created together.
func JournalStreams() []string {
	return []string{StreamCalls, StreamIntents, StreamJournals, StreamKeys, StreamObjects, StreamResults}
}

var tokenEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Token converts a name to one NATS subject token. Names of 1 to 64 letters, digits, "_" and "-"
// are unchanged. Every other name becomes "=" and 26 characters of its SHA-256. Plain names
// cannot contain "=", so two names never share a token.
func Token[S ~string](name S) string {
	if PlainToken(name) {
		return string(name)
	}
	sum := sha256.Sum256([]byte(name))
	return "=" + tokenEncoding.EncodeToString(sum[:])[:26]
}

// PlainToken reports whether the [Token] of a name is the name itself.
func PlainToken[S ~string](name S) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// LastToken returns the text after the last dot of a subject.
func LastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }
