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
//	callyard.v1.reply.ROUTER.MSG     core   worker → that router: results, errors, progress, parts
//	callyard.v1.ctl.WORKER           core   router → that worker: cancel, grants for parts
//	callyard.v1.worker.WORKER        core   worker → routers: announcement, each second and on change
//	callyard.v1.router.ROUTER        core   router → routers: "I am here", so that slots can be shared out
//	callyard.v1.hello                core   router → workers: announce yourselves now
//	callyard_switches                KV     tools switched off, with the reason; written by front doors
//	callyard_servers                 KV     servers added over the API; written by front doors
//
//	subject                                  stream            what a message is
//	callyard.v1.approval.ID.open             callyard_ledger   how the approval began: record in a header, definition and arguments below
//	callyard.v1.approval.ID.state            callyard_ledger   the record as it stands; each change expects the last one (compare-and-set)
//	callyard.v1.part.ID.KIND.NAME.N          callyard_ledger   part N of bytes that do not fit beside a record; NAME is from their digest
//	callyard.v1.token.HASH                   callyard_tokens   a confirmation token, by its hash; spent by compare-and-set
//	callyard.v1.audit.WRITER                 callyard_audit    lines of the audit chain of one writer; each expects the last one
//	callyard_audit_heads                     KV                how far each audit chain has come; written by the chain's writer
//
// Front doors and the approver publish these; workers do not. Each stream but
// callyard_audit keeps one message for a subject.
const (
	prefix         = "callyard.v1."
	subjectCall    = prefix + "call."
	subjectServe   = prefix + "serve."
	subjectReply   = prefix + "reply."
	subjectControl = prefix + "ctl."
	subjectWorker  = prefix + "worker."
	subjectRouter  = prefix + "router."
	subjectHello   = prefix + "hello"

	queueWorkers = "w"

	bucketSwitches = "callyard_switches"
	bucketServers  = "callyard_servers"

	subjectApproval = prefix + "approval."
	subjectPart     = prefix + "part."
	subjectToken    = prefix + "token."
	subjectAudit    = prefix + "audit."

	tokenOpen  = ".open"
	tokenState = ".state"

	streamLedger = "callyard_ledger"
	streamTokens = "callyard_tokens"
	streamAudit  = "callyard_audit"
	bucketHeads  = "callyard_audit_heads"

	// headerRecord holds a record in base64, so that nothing in it can be taken
	// for a header of NATS.
	headerRecord = "Callyard-Record"
)

var tokenEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// token turns any name into one NATS subject token. Names of 1 to 64 letters,
// digits, "_" and "-" stand for themselves; every other name becomes "=" and
// 26 characters of its SHA-256, which no plain name can spell, so two names
// never share a token.
func token(name string) string {
	if plainToken(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "=" + tokenEncoding.EncodeToString(sum[:])[:26]
}

func plainToken(name string) bool {
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

// lastToken returns what follows the last dot of a subject.
func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }
