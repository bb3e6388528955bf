package bus

import "slices"

// Role is what one kind of process may do at NATS. deploy/nats is written from
// it, so that a stolen process cannot speak for one of another kind.
type Role struct {
	// Name is "frontdoor", "approver" or "worker".
	Name string
	// Publish and Subscribe are the subjects it needs; a subject of NATS with a
	// space and a queue group allows that group alone. All others are to be denied.
	Publish, Subscribe []string
}

// Names of roles.
const (
	RoleFrontDoor = "frontdoor"
	RoleApprover  = "approver"
	RoleWorker    = "worker"
)

// inbox begins the subjects on which a connection is answered. Each role has
// inboxes of its own, so that none reads what another one asked for.
const inbox = "_INBOX."

// store is a stream with the writes to it that a role needs.
type store struct {
	stream string
	writes []string
	purge  bool // parts of it are forgotten by those who wrote them
}

func table(bucket string) store {
	return store{stream: kvStream + bucket, writes: []string{kvSubject + bucket + ".>"}}
}

// shared are the stores that the front door and the approver both write.
func shared() []store {
	return []store{
		{stream: streamLedger, writes: []string{subjectApproval + "*" + tokenState, subjectPart + "*.*.*.*"}},
		{stream: streamAudit, writes: []string{subjectAudit + "*"}},
		table(bucketHeads), table(bucketPermissions),
	}
}

// Roles returns what each kind of process needs, and nothing else.
func Roles() []Role {
	return []Role{frontDoorRole(), approverRole(), workerRole()}
}

func frontDoorRole() Role {
	r := Role{
		Name: RoleFrontDoor,
		Publish: []string{
			subjectCall + "*", subjectServe + "*", subjectControl + "*", subjectHello, subjectRouter + "*", subjectCancel, subjectChanged + "*.*",
			subjectWant + "*", subjectApproval + "*" + tokenOpen,
		},
		Subscribe: []string{subjectReply + "*.*", subjectWorker + "*", subjectRouter + "*", subjectCancel, subjectChanged + "*.*", subjectUpdated + "*"},
	}
	journal := func(token string) string { return subjectJournal + "*" + token }
	return r.with(append(shared(),
		table(bucketSwitches), table(bucketServers),
		store{stream: streamExecutions, writes: []string{subjectRecord + "*.*"}},
		store{stream: streamDeliveries, writes: []string{subjectDelivery + "*" + tokenState, subjectDelivery + "*" + tokenBody}},
		store{stream: streamJournals, writes: []string{journal(tokenManifest), journal(tokenLease)}, purge: true},
		store{stream: streamCalls, writes: []string{journal(tokenCalls)}, purge: true},
		store{stream: streamIntents, writes: []string{journal(tokenIntents)}, purge: true},
		store{stream: streamResults, writes: []string{journal(tokenResults)}, purge: true},
		store{stream: streamObjects, writes: []string{subjectObject + "*.*.*"}, purge: true},
		store{stream: streamKeys, writes: []string{subjectKey + "*"}},
	))
}

func approverRole() Role {
	r := Role{Name: RoleApprover}
	return r.with(append(shared(),
		table(bucketSlackPeople), table(bucketSlackCodes), table(bucketSlackMessages), table(bucketSlackOnce), table(bucketNotices),
		store{stream: streamNoticeDeliveries, writes: []string{subjectNotice + "*" + tokenState, subjectNotice + "*" + tokenBody}},
	))
}

func workerRole() Role {
	return Role{
		Name:      RoleWorker,
		Publish:   []string{subjectReply + "*.*", subjectWorker + "*", subjectUpdated + "*"},
		Subscribe: []string{subjectCall + "*", subjectServe + "* " + queueWorkers, subjectControl + "*", subjectHello, subjectWant + "*", subjectRouter + "*", subjectWorker + "*"},
	}
}

// api begins the subjects of JetStream's requests, flow those on which a reader
// says that it keeps up: names of NATS.
const (
	api  = "$JS.API."
	flow = "$JS.FC."
)

// with adds what it takes to open, read and write the stores, and to be answered.
func (r Role) with(stores []store) Role {
	for _, s := range stores {
		r.Publish = append(r.Publish, s.writes...)
	}
	r.Publish = append(r.Publish, api+"INFO")
	for _, s := range stores {
		r.Publish = append(r.Publish,
			api+"STREAM.INFO."+s.stream, api+"STREAM.CREATE."+s.stream, api+"STREAM.MSG.GET."+s.stream,
			api+"DIRECT.GET."+s.stream, api+"DIRECT.GET."+s.stream+".>",
			// Without a name: so the NATS client asks for a watch while it does not know yet
			// which server it comes back to.
			api+"CONSUMER.CREATE."+s.stream, api+"CONSUMER.CREATE."+s.stream+".>", api+"CONSUMER.INFO."+s.stream+".*", api+"CONSUMER.DELETE."+s.stream+".*",
			flow+s.stream+".>",
		)
		if s.purge {
			r.Publish = append(r.Publish, api+"STREAM.PURGE."+s.stream)
		}
	}
	r.Subscribe = append(slices.Clone(r.Subscribe), inbox+r.Name+".>")
	return r
}
