package bus

import "slices"

// Role is the set of NATS permissions of one kind of process. deploy/nats and
// docs/reference/nats-permissions.md are generated from it. It prevents a compromised process from
// impersonating one of another kind.
type Role struct {
	// Name is [RoleFrontDoor], [RoleApprover] or [RoleWorker].
	Name string
	// Publish and Subscribe are the required subjects. A subscribe subject with a space and a
	// queue group allows only that group. All other subjects must be denied, and
	// allow_responses must not be used. With it, a process that can both publish and subscribe
	// on a subject could acquire any other subject, by a message to itself with that subject
	// as its reply subject.
	Publish, Subscribe []string
	// Sends are the subjects of Publish that neither are JetStream requests nor write to a
	// stream.
	Sends []string
	// Stores are the streams that the role uses.
	Stores []Store
}

// Store is a stream with the permissions of a role on it. No role may create, change or remove
// a stream; `callyard init` creates them.
type Store struct {
	// Stream is the name of the stream. The stream of a table begins with KV_.
	Stream string
	// Writes are the subjects on which the role may store messages.
	Writes []string
	// Last permits reading the last message of a subject from the leader of the stream.
	Last bool
	// Direct permits reading the last message of a subject from any replica.
	Direct bool
	// Range permits reading messages in order.
	Range bool
	// Follows is the filter subject of the role's consumers. If empty, it has none.
	Follows string
	// Purge permits writers to purge parts of the stream.
	Purge bool
	// Erase permits removing single messages and overwriting their bytes.
	Erase bool
}

// The names of roles.
const (
	RoleFrontDoor = "frontdoor"
	RoleApprover  = "approver"
	RoleWorker    = "worker"
)

// inbox is the prefix of the inboxes for replies. Each role has its own inboxes, so that it
// cannot read the replies to another role.
const inbox = "_INBOX."

// table returns the store of a bucket that is watched.
func table(bucket string) Store {
	rows := kvSubject + bucket + ".>"
	return Store{Stream: kvStream + bucket, Writes: []string{rows}, Follows: rows}
}

// compareAndSetTable returns a table whose rows are changed by compare-and-set. If a row cannot be created,
// the NATS client reads the existing row directly, and Callyard reads it from the leader.
func compareAndSetTable(bucket string) Store {
	s := table(bucket)
	s.Last, s.Direct = true, true
	return s
}

// unwatchedTable returns a contested table that is read row by row from the leader and is not
// watched.
func unwatchedTable(bucket string) Store {
	s := compareAndSetTable(bucket)
	s.Follows = ""
	return s
}

// followed returns a table that is only read.
func followed(bucket string) Store {
	s := table(bucket)
	s.Writes = nil
	return s
}

// claimTable returns a table of names, each of which can be taken once.
func claimTable(bucket string) Store {
	s := compareAndSetTable(bucket)
	s.Follows, s.Last = "", false
	return s
}

// shared returns the stores that both the front door and the approver write.
func shared() []Store {
	heads := table(BucketAuditHeads)
	heads.Follows = "" // only people read it, as the operator or through the front door
	return []Store{
		{
			Stream: StreamLedger, Writes: []string{SubjectApproval + "*" + SuffixState, SubjectPart + "*.*.*.*"},
			Last: true, Direct: true, Follows: SubjectApproval + "*.*",
		},
		{Stream: StreamHeld, Writes: []string{SubjectHeld + "*.*.*.*"}, Last: true, Direct: true, Purge: true},
		{Stream: StreamAudit, Writes: []string{SubjectAudit + "*"}, Last: true, Range: true},
		heads, compareAndSetTable(BucketPermissions), unwatchedTable(BucketCredentials),
		{Stream: StreamDataKeys, Writes: []string{SubjectDataKey + "*"}, Last: true, Follows: SubjectDataKey + "*", Erase: true},
	}
}

func deliveries(stream, subject string) Store {
	return Store{Stream: stream, Writes: []string{subject + "*" + SuffixState, subject + "*" + SuffixBody}, Last: true, Direct: true, Follows: subject + "*" + SuffixState}
}

// Roles returns the minimal permissions of each kind of process.
func Roles() []Role {
	return []Role{frontDoorRole(), approverRole(), workerRole()}
}

func frontDoorRole() Role {
	r := Role{
		Name: RoleFrontDoor,
		Sends: []string{
			subjectCall + "*", subjectServe + "*", subjectControl + "*", subjectHello, subjectRouter + "*", subjectCancel, SubjectChanged + "*.*",
			subjectWant + "*",
		},
		Subscribe: []string{subjectReply + "*.*", subjectWorker + "*", subjectRouter + "*", subjectApprover + "*", subjectCancel, SubjectChanged + "*.*", subjectUpdated + "*"},
	}
	log := func(stream, token string) Store {
		return Store{Stream: stream, Writes: []string{SubjectJournal + "*" + token}, Last: true, Range: true, Purge: true}
	}
	sessions := table(BucketSessions)
	sessions.Last = true
	stores := append(shared(),
		table(BucketSwitches), table(BucketServers), compareAndSetTable(BucketSets), compareAndSetTable(BucketAPIKeys), table(BucketKeyUses), sessions, compareAndSetTable(BucketPins), followed(BucketOAuthEnded),
		Store{Stream: StreamExecutions, Writes: []string{SubjectRecord + "*.*"}, Range: true},
		Store{Stream: StreamUsage, Writes: []string{SubjectUsage + "*"}, Last: true},
		deliveries(StreamDeliveries, SubjectDelivery),
		Store{
			Stream: StreamJournals, Writes: []string{SubjectJournal + "*" + SuffixManifest, SubjectJournal + "*" + SuffixLease},
			Last: true, Direct: true, Follows: SubjectJournal + "*" + SuffixManifest, Purge: true,
		},
		log(StreamCalls, SuffixCalls), log(StreamIntents, SuffixIntents), log(StreamResults, SuffixResults),
		Store{Stream: StreamObjects, Writes: []string{SubjectObject + "*.*.*"}, Last: true, Direct: true, Purge: true},
		Store{Stream: StreamKeys, Writes: []string{SubjectKey + "*"}, Last: true},
	)
	for i := range stores {
		if stores[i].Stream == kvStream+BucketAuditHeads { // the front door verifies the audit record
			stores[i] = table(BucketAuditHeads)
			stores[i].Direct = true
		}
	}
	ledger := &stores[0]
	ledger.Writes = append(ledger.Writes, SubjectApproval+"*"+SuffixOpen)
	return r.with(stores)
}

func approverRole() Role {
	ended := table(BucketOAuthEnded)
	ended.Follows = "" // front doors, not the approver, refuse the tokens of these grants
	return Role{Name: RoleApprover, Sends: []string{subjectApprover + "*"}}.with(append(shared(),
		unwatchedTable(BucketOAuthKeys), compareAndSetTable(BucketOAuthGrants), ended, claimTable(BucketOAuthOnce),
		compareAndSetTable(BucketSlackPeople), compareAndSetTable(BucketSlackCodes), compareAndSetTable(BucketSlackMessages), claimTable(BucketSlackOnce), compareAndSetTable(BucketNotices),
		deliveries(StreamNoticeDeliveries, SubjectNotice),
	))
}

func workerRole() Role {
	sends := []string{subjectReply + "*.*", subjectWorker + "*", subjectUpdated + "*"}
	return Role{
		Name: RoleWorker, Sends: sends, Publish: sends,
		Subscribe: []string{subjectCall + "*", subjectServe + "* " + queueWorkers, subjectControl + "*", subjectHello, subjectWant + "*", subjectRouter + "*", subjectWorker + "*"},
	}
}

// NATS subject prefixes: api of JetStream requests, flow of a consumer's flow control
// responses.
const (
	api  = "$JS.API."
	flow = "$JS.FC."
)

// with adds the permissions to use the stores and to receive replies.
func (r Role) with(stores []Store) Role {
	r.Stores = stores
	r.Publish = slices.Clone(r.Sends)
	for _, s := range stores {
		r.Publish = append(r.Publish, s.Writes...)
	}
	r.Publish = append(r.Publish, api+"INFO")
	for _, s := range stores {
		r.Publish = append(r.Publish, s.requests()...)
	}
	r.Subscribe = append(slices.Clone(r.Subscribe), inbox+r.Name+".>")
	return r
}

// requests returns the subjects of the JetStream requests that the store needs.
func (s Store) requests() []string {
	all := []string{api + "STREAM.INFO." + s.Stream}
	if s.Last {
		all = append(all, api+"STREAM.MSG.GET."+s.Stream)
	}
	if s.Direct {
		all = append(all, api+"DIRECT.GET."+s.Stream+".>")
	}
	if s.Range {
		all = append(all, api+"DIRECT.GET."+s.Stream)
	}
	if s.Follows != "" {
		all = append(all, api+"CONSUMER.CREATE."+s.Stream+".*."+s.Follows, flow+s.Stream+".>")
	}
	if s.Purge {
		all = append(all, api+"STREAM.PURGE."+s.Stream)
	}
	if s.Erase {
		all = append(all, api+"STREAM.MSG.DELETE."+s.Stream)
	}
	return all
}
