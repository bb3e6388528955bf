package bus

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// Every subject, queue group and bucket of Callyard is built here and nowhere
// else. WORKER, ROUTER and SERVER stand for a [token].
//
//	subject                          kind   who publishes → who listens
//	callyard.v1.call.WORKER          core   router → that worker: calls, one or many in a message
//	callyard.v1.serve.SERVER         core   router → any worker of the server (queue group "w"), the fallback
//	callyard.v1.reply.ROUTER.MSG     core   worker → that router: results, errors, progress, parts; MSG is random
//	callyard.v1.ctl.WORKER           core   router → that worker: cancel, grants for parts; empty: "do you listen?", answered on reply
//	callyard.v1.worker.WORKER        core   worker → routers: announcement, each second and on change
//	callyard.v1.router.ROUTER        core   router → routers: "I am here", so that slots can be shared out; workers hear whether anybody is there
//	callyard.v1.approver.APPROVER    core   approver → routers: "I am here", and which configuration it goes by
//	callyard.v1.hello                core   router → workers: announce yourselves now
//	callyard.v1.cancel               core   front door → routers: the id of a call that is to end
//	callyard.v1.want.SERVER          core   front door → workers of the server: resources of whose changes somebody wants to hear
//	callyard.v1.updated.SERVER       core   worker → front doors: resources that have changed
//	callyard_switches                KV     tools switched off, with the reason; written by front doors
//	callyard_servers                 KV     servers added over the API; written by front doors
//	callyard_pins                    KV     accepted definitions of tools, one row for each server; changed by compare-and-set; written by front doors
//	callyard_credentials             KV     credentials of people at MCP servers, encrypted; changed by compare-and-set; written by front doors and approvers
//	callyard_sessions                KV     sessions of MCP clients, by the digest of their ids; forgotten after 24 h; written by front doors
//
//	subject                                  stream            what a message is
//	callyard.v1.approval.ID.open             callyard_ledger   how the approval began: record in a header, definition and arguments below
//	callyard.v1.approval.ID.state            callyard_ledger   the record as it stands; each change expects the last one (compare-and-set)
//	callyard.v1.part.ID.KIND.NAME.N          callyard_ledger   part N of bytes that do not fit in a record; NAME is from their digest
//	callyard.v1.held.ID.KIND.NAME.N          callyard_held     part N of large arguments of a call that waits; forgotten when it has ended
//	callyard.v1.audit.WRITER                 callyard_audit    lines of the audit chain of one writer; each expects the last one
//	callyard.v1.delivery.ID.state            callyard_deliveries   where a webhook's delivery stands; each change expects the last one; empty: it has ended
//	callyard.v1.delivery.ID.body             callyard_deliveries   the event's bytes, as each attempt sends them
//	callyard_audit_heads                     KV                how far each audit chain has come; written by the chain's writer
//	callyard_permissions                     KV                standing permissions; changed by compare-and-set
//	callyard_slack_people                    KV                the principal of each Slack account; written by the approver, as all of these
//	callyard_slack_codes                     KV                codes that connect somebody in Slack; forgotten after 15 min
//	callyard_slack_messages                  KV                which message of Slack shows which approval; changed by compare-and-set
//	callyard_slack_once                      KV                requests of Slack that were taken; forgotten after 15 min
//	callyard_notices                         KV                which approval events each receiver was told
//	callyard.v1.notice.ID.state, .body       callyard_notice_deliveries   as callyard.v1.delivery, for the approver's events
//	callyard.v1.record.HOUR.SLOT             callyard_executions   records of calls that were admitted within one slot of 10 s, from any front door
//	callyard.v1.usage.HOUR                   callyard_usage    what was counted of the records of one hour, in hours since 1970; changed by compare-and-set
//	callyard.v1.usage.cursor                 callyard_usage    up to which message of callyard_executions everything was counted; changed by compare-and-set
//	callyard.v1.journal.ID.manifest          callyard_journals what a journal of durable calls says of itself; changed by compare-and-set
//	callyard.v1.journal.ID.lease             callyard_journals who has the journal; forgotten by itself when it is not renewed
//	callyard.v1.journal.secret.lease         callyard_journals the secret that the ids of durable calls are made with; the first writer wins
//	callyard.v1.journal.ID.calls             callyard_calls    accepted calls, many in a message; each message expects the last one
//	callyard.v1.journal.ID.intents           callyard_intents  calls about to leave, in the same form
//	callyard.v1.journal.ID.results           callyard_results  results, in the same form; forgotten by age
//	callyard.v1.object.ID.NAME.N             callyard_objects  part N of bytes that are too large for a record of journal ID
//	callyard.v1.key.HASH                     callyard_keys     what an idempotency key stands for; the first writer wins
//	callyard.v1.datakey.TENANT               callyard_data_keys   the data key of a tenant, encrypted, or that it was destroyed; the first writer wins
//	callyard.v1.changed.ID.LOG               core              front door → front doors: the log of the journal has a new message
//
// Front doors and the approver publish these; workers do not. Each stream but
// callyard_audit, callyard_executions, callyard_data_keys, callyard_calls, callyard_intents and
// callyard_results keeps one message for a subject.
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
	// BucketCredentials has the credentials of people at MCP servers, encrypted.
	BucketCredentials = "callyard_credentials" //nolint:gosec // a name
	BucketAPIKeys     = "callyard_api_keys"    //nolint:gosec // a name
	BucketKeyUses     = "callyard_key_uses"
	// BucketOAuthKeys and BucketOAuthGrants have the keys of the authorization server and what
	// people granted, encrypted.
	BucketOAuthKeys   = "callyard_oauth_keys"
	BucketOAuthGrants = "callyard_oauth_grants"
	// BucketOAuthEnded has the grants that ended while access tokens of them were valid, and
	// BucketOAuthOnce the assertions with which clients authenticated.
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

	// StreamDataKeys has the keys with which payloads of tenants are encrypted.
	StreamDataKeys = "callyard_data_keys"

	StreamUsage = "callyard_usage"

	// ProbeToken takes the place of an id in a [StreamSpec].Probe. No id is spelled like
	// it, and nobody reads the message.
	ProbeToken = "write-probe"

	// headerRecord is for a [Message].Record.
	headerRecord = "Callyard-Record"
)

// Tables of the approver.
const (
	BucketSlackPeople   = "callyard_slack_people"
	BucketSlackCodes    = "callyard_slack_codes"
	BucketSlackMessages = "callyard_slack_messages"
	BucketSlackOnce     = "callyard_slack_once"
	BucketNotices       = "callyard_notices"
)

// JournalStreams are the streams of durable calls, which are made together.
func JournalStreams() []string {
	return []string{StreamCalls, StreamIntents, StreamJournals, StreamKeys, StreamObjects, StreamResults}
}

var tokenEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Token turns any name into one NATS subject token. Names of 1 to 64 letters,
// digits, "_" and "-" stand for themselves; every other name becomes "=" and
// 26 characters of its SHA-256, which no plain name can spell, so two names
// never share a token.
func Token[S ~string](name S) string {
	if PlainToken(name) {
		return string(name)
	}
	sum := sha256.Sum256([]byte(name))
	return "=" + tokenEncoding.EncodeToString(sum[:])[:26]
}

// PlainToken says that a name is a [Token] by itself.
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

// LastToken returns what follows the last dot of a subject.
func LastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }
