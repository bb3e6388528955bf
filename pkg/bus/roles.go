package bus

import "slices"

// Role is what one kind of process may do at NATS. deploy/nats and
// docs/reference/nats-permissions.md are written from it, so that a stolen process cannot speak
// for one of another kind.
type Role struct {
	// Name is "frontdoor", "approver" or "worker".
	Name string
	// Publish and Subscribe are the subjects it needs; a subject of NATS with a
	// space and a queue group allows that group alone. All others are to be denied,
	// and nothing is lent for answers (allow_responses): whoever hears a subject that
	// it may publish on could borrow any other.
	Publish, Subscribe []string
	// Sends are those of Publish that are no requests to JetStream and write no stream.
	Sends []string
	// Stores are the streams that it uses.
	Stores []Store
}

// Store is a stream with what a role may do there. No role makes, changes or removes
// a stream: `callyard init` makes them.
type Store struct {
	// Stream is the name of the stream; that of a table begins with KV_.
	Stream string
	// Writes are the subjects that it may store messages on.
	Writes []string
	// Last: it reads the last message of a subject from the leader of the stream.
	Last bool
	// Direct: it reads the last message of a subject from any replica.
	Direct bool
	// Range: it reads messages in their order.
	Range bool
	// Follows is what a consumer may deliver; empty: it has none.
	Follows string
	// Purge: parts of the stream are forgotten by those who write it.
	Purge bool
	// Erase: single messages are removed, and their bytes overwritten.
	Erase bool
}

// Names of roles.
const (
	RoleFrontDoor = "frontdoor"
	RoleApprover  = "approver"
	RoleWorker    = "worker"
)

// inbox begins the inboxes on which a connection is answered. Each role has
// inboxes of its own, so that none reads what another one asked for.
const inbox = "_INBOX."

// table is the store of a bucket whose rows are followed.
func table(bucket string) Store {
	rows := kvSubject + bucket + ".>"
	return Store{Stream: kvStream + bucket, Writes: []string{rows}, Follows: rows}
}

// contested is a table whose rows are changed by compare-and-set. NATS's client looks
// at a row that it may not create, and ours at the leader's.
func contested(bucket string) Store {
	s := table(bucket)
	s.Last, s.Direct = true, true
	return s
}

// unfollowed is a contested table that is read row by row, from the leader, and followed by
// nobody.
func unfollowed(bucket string) Store {
	s := contested(bucket)
	s.Follows = ""
	return s
}

// followed is a table that is only read.
func followed(bucket string) Store {
	s := table(bucket)
	s.Writes = nil
	return s
}

// takenOnce is a table of names of which each is taken once.
func takenOnce(bucket string) Store {
	s := contested(bucket)
	s.Follows, s.Last = "", false
	return s
}

// shared are the stores that the front door and the approver both write.
func shared() []Store {
	heads := table(BucketAuditHeads)
	heads.Follows = "" // people read it, as the operator, or over the front door
	return []Store{
		{
			Stream: StreamLedger, Writes: []string{SubjectApproval + "*" + SuffixState, SubjectPart + "*.*.*.*"},
			Last: true, Direct: true, Follows: SubjectApproval + "*.*",
		},
		{Stream: StreamHeld, Writes: []string{SubjectHeld + "*.*.*.*"}, Last: true, Direct: true, Purge: true},
		{Stream: StreamAudit, Writes: []string{SubjectAudit + "*"}, Last: true, Range: true},
		heads, contested(BucketPermissions), unfollowed(BucketCredentials),
		{Stream: StreamDataKeys, Writes: []string{SubjectDataKey + "*"}, Last: true, Follows: SubjectDataKey + "*", Erase: true},
	}
}

func deliveries(stream, subject string) Store {
	return Store{Stream: stream, Writes: []string{subject + "*" + SuffixState, subject + "*" + SuffixBody}, Last: true, Direct: true, Follows: subject + "*" + SuffixState}
}

// Roles returns what each kind of process needs, and nothing else.
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
		table(BucketSwitches), table(BucketServers), contested(BucketSets), contested(BucketAPIKeys), table(BucketKeyUses), sessions, contested(BucketPins), followed(BucketOAuthEnded),
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
		if stores[i].Stream == kvStream+BucketAuditHeads { // it verifies the audit record
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
	ended.Follows = "" // front doors refuse their tokens
	return Role{Name: RoleApprover, Sends: []string{subjectApprover + "*"}}.with(append(shared(),
		unfollowed(BucketOAuthKeys), contested(BucketOAuthGrants), ended, takenOnce(BucketOAuthOnce),
		contested(BucketSlackPeople), contested(BucketSlackCodes), contested(BucketSlackMessages), takenOnce(BucketSlackOnce), contested(BucketNotices),
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

// api begins the subjects of JetStream's requests, flow those on which a reader
// says that it keeps up: names of NATS.
const (
	api  = "$JS.API."
	flow = "$JS.FC."
)

// with adds what it takes to use the stores, and to be answered.
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

// requests are the subjects of JetStream's requests that the store needs.
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
