package deploy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// stolen is a connection with the password of a role, in the hands of somebody else.
type stolen struct {
	nc *nats.Conn
	t  testing.TB
}

func steal(t testing.TB, address, role string) stolen {
	t.Helper()
	nc, err := nats.Connect("nats://"+address, nats.UserInfo(role, role), nats.CustomInboxPrefix("_INBOX."+role), nats.NoReconnect(), nats.PermissionErrOnSubscribe(true),
		// What is denied is asked for below; nobody needs to be told twice.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatalf("signing in as %s: %v", role, err)
	}
	t.Cleanup(nc.Close)
	return stolen{nc, t}
}

// denied says whether the server refused what was sent last. Its word comes before
// the answer to the flush.
func (s stolen) denied(subject string) bool {
	s.t.Helper()
	if err := s.nc.FlushTimeout(within); err != nil {
		s.t.Fatal(err)
	}
	err := s.nc.LastError()
	return err != nil && errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}

func (s stolen) publish(subject string) bool {
	s.t.Helper()
	if err := s.nc.Publish(subject, []byte("x")); err != nil {
		s.t.Fatal(err)
	}
	return s.denied(subject)
}

func (s stolen) subscribe(subject, group string) bool {
	s.t.Helper()
	sub, err := s.nc.QueueSubscribeSync(subject, group)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // a denied one is gone already
	return s.denied(subject)
}

// attempt is one thing that somebody tries with a stolen password.
type attempt struct{ what, subject string }

// What no role but its owner may send. The subjects are written out, not taken from
// pkg/bus: a change there that gives a role more is to be seen here.
var (
	sendingCalls = []attempt{
		{"sending a call to a worker", "callyard.v1.call.w1"},
		{"sending a call to any worker", "callyard.v1.serve.demo"},
		{"controlling a worker", "callyard.v1.ctl.w1"},
		{"asking workers who they are", "callyard.v1.hello"},
		{"posing as a front door", "callyard.v1.router.r1"},
		{"canceling a call", "callyard.v1.cancel"},
	}
	journaling = []attempt{
		{"accepting a durable call", "callyard.v1.journal.j1.calls"},
		{"writing an intent", "callyard.v1.journal.j1.intents"},
		{"writing a result", "callyard.v1.journal.j1.results"},
		{"taking a journal", "callyard.v1.journal.j1.lease"},
		{"writing a manifest", "callyard.v1.journal.j1.manifest"},
		{"writing an object", "callyard.v1.object.j1.n.0"},
		{"taking an idempotency key", "callyard.v1.key.k1"},
		{"saying that a journal changed", "callyard.v1.changed.j1.calls"},
		{"writing a call record", "callyard.v1.record.1.1"},
		{"sending a webhook", "callyard.v1.delivery.d1.state"},
		{"opening an approval", "callyard.v1.approval.a1.open"},
		{"switching a tool", "$KV.callyard_switches.demo.echo"},
		{"adding a server", "$KV.callyard_servers.evil"},
		{"removing calls", "$JS.API.STREAM.PURGE.callyard_calls"},
		{"reading durable calls", "$JS.API.DIRECT.GET.callyard_calls"},
		{"following results", "$JS.API.CONSUMER.CREATE.callyard_results.c1.callyard.v1.journal.>"},
	}
	deciding = []attempt{
		{"writing an approval", "callyard.v1.approval.a1.state"},
		{"writing bytes of an approval", "callyard.v1.part.a1.arguments.n.0"},
		{"writing a permission", "$KV.callyard_permissions.p1"},
		{"writing the audit record", "callyard.v1.audit.approver-1"},
		{"moving the head of the audit record", "$KV.callyard_audit_heads.approver-1"},
		{"reading approvals", "$JS.API.DIRECT.GET.callyard_ledger"},
	}
	askingPeople = []attempt{
		{"connecting somebody in Slack", "$KV.callyard_slack_people.u1"},
		{"making a code for Slack", "$KV.callyard_slack_codes.c1"},
		{"taking a request of Slack", "$KV.callyard_slack_once.r1"},
		{"moving a card", "$KV.callyard_slack_messages.m1"},
		{"marking a notice as told", "$KV.callyard_notices.n1"},
		{"sending a notice", "callyard.v1.notice.n1.state"},
		{"reading who is who in Slack", "$JS.API.DIRECT.GET.KV_callyard_slack_people"},
	}
	working = []attempt{
		{"answering a call", "callyard.v1.reply.r1.1"},
		{"announcing a worker", "callyard.v1.worker.w1"},
	}
	ruling = []attempt{
		{"removing the ledger", "$JS.API.STREAM.DELETE.callyard_ledger"},
		{"changing the ledger", "$JS.API.STREAM.UPDATE.callyard_ledger"},
		{"emptying the ledger", "$JS.API.STREAM.PURGE.callyard_ledger"},
		{"removing an audit line", "$JS.API.STREAM.MSG.DELETE.callyard_audit"},
		{"emptying the audit record", "$JS.API.STREAM.PURGE.callyard_audit"},
		{"making a stream of its own", "$JS.API.STREAM.CREATE.mine"},
		{"listing streams", "$JS.API.STREAM.NAMES"},
		{"restoring a stream", "$JS.API.STREAM.RESTORE.callyard_ledger"},
		{"asking the server", "$SYS.REQ.SERVER.PING"},
		{"answering others' requests", "_INBOX.frontdoor.x.y"},
		{"anything else", "callyard.v1.news"},
	}
)

// watching is beginning the watch of a stream, asked with the name of a consumer and, as
// the NATS client does right after a reconnect, without.
var watching = []attempt{
	{"a watch", "$JS.API.CONSUMER.CREATE.callyard_ledger.c1.callyard.v1.approval.*"},
	{"a watch after a reconnect", "$JS.API.CONSUMER.CREATE.callyard_ledger"},
}

func TestAStolenRoleCannotSpeakForAnother(t *testing.T) {
	_, address := startNATS(t, natsFile(t, "nats-server.conf"))
	type group = []attempt
	for role, c := range map[string]struct{ may, mayNot []group }{
		"worker":    {may: []group{working}, mayNot: []group{sendingCalls, journaling, deciding, askingPeople, watching, ruling}},
		"frontdoor": {may: []group{sendingCalls, journaling, deciding, watching}, mayNot: []group{working, askingPeople, ruling}},
		"approver":  {may: []group{deciding, askingPeople, watching}, mayNot: []group{sendingCalls, journaling, working, ruling}},
	} {
		t.Run(role, func(t *testing.T) {
			s := steal(t, address, role)
			for _, g := range c.mayNot {
				for _, a := range g {
					if !s.publish(a.subject) {
						t.Errorf("%s is allowed %s (%s)", role, a.what, a.subject)
					}
				}
			}
			// What a role may do shows that the server was asked at all. A connection of
			// its own: it has no errors yet.
			s = steal(t, address, role)
			for _, g := range c.may {
				for _, a := range g {
					if s.publish(a.subject) {
						t.Errorf("%s is denied %s (%s)", role, a.what, a.subject)
					}
				}
			}
		})
	}
}

func TestAStolenRoleCannotListenForAnother(t *testing.T) {
	_, address := startNATS(t, natsFile(t, "nats-server.conf"))
	const all = ""
	type ear struct{ subject, group string }
	calls := []ear{{"callyard.v1.call.*", all}, {"callyard.v1.serve.*", "w"}, {"callyard.v1.ctl.w1", all}}
	replies := []ear{{"callyard.v1.reply.*.*", all}}
	presence := []ear{{"callyard.v1.worker.*", all}} // workers hear which others live, whose containers they remove when not
	answers := func(role string) []ear { return []ear{{"_INBOX." + role + ".>", all}} }
	nobody := []ear{{">", all}, {"$JS.>", all}, {"_INBOX.>", all}, {"callyard.>", all}, {"callyard.v1.approval.>", all}, {"callyard.v1.journal.>", all}, {"$KV.>", all}, {"callyard.v1.serve.demo", all}, {"callyard.v1.serve.demo", "others"}}
	for role, c := range map[string]struct{ may, mayNot [][]ear }{
		"worker":    {may: [][]ear{calls, presence}, mayNot: [][]ear{replies, answers("frontdoor"), answers("approver"), nobody}},
		"frontdoor": {may: [][]ear{replies, presence, answers("frontdoor")}, mayNot: [][]ear{calls, answers("approver"), nobody}},
		"approver":  {may: [][]ear{answers("approver")}, mayNot: [][]ear{calls, replies, presence, answers("frontdoor"), nobody}},
	} {
		t.Run(role, func(t *testing.T) {
			for want, groups := range map[bool][][]ear{true: c.mayNot, false: c.may} {
				s := steal(t, address, role) // one without errors
				for _, g := range groups {
					for _, e := range g {
						if got := s.subscribe(e.subject, e.group); got != want {
							t.Errorf("%s listening on %s (group %q): denied %t, want %t", role, e.subject, e.group, got, want)
						}
					}
				}
			}
		})
	}
}

// A worker hears subjects that it may publish on: what it sends to itself there names any
// reply subject.
func TestAWorkerIsNotLentTheReplySubjectOfWhatItIsSent(t *testing.T) {
	_, address := startNATS(t, natsFile(t, "nats-server.conf"))
	worker, door := steal(t, address, "worker"), steal(t, address, "frontdoor")
	for _, heard := range []struct {
		subject string
		from    stolen
	}{{"callyard.v1.worker.w1", worker}, {"callyard.v1.ctl.w1", door}} {
		sub, err := worker.nc.SubscribeSync(heard.subject)
		if err != nil {
			t.Fatal(err)
		}
		if worker.denied("") {
			t.Fatalf("the worker does not hear %s", heard.subject)
		}
		for _, reply := range []string{
			"_INBOX.frontdoor.a.b", "callyard.v1.call.w2", "callyard.v1.ctl.w2", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.DELETE.callyard_audit",
			"$JS.API.DIRECT.GET.callyard_calls", "$KV.callyard_servers.evil", "callyard.v1.journal.j1.calls",
		} {
			if err := heard.from.nc.PublishRequest(heard.subject, reply, []byte("x")); err != nil {
				t.Fatal(err)
			}
			m, err := sub.NextMsg(within)
			if err != nil {
				t.Fatal(err)
			}
			if m.Reply != reply {
				t.Fatalf("the reply subject is %s", m.Reply)
			}
			if !worker.publish(reply) {
				t.Errorf("after a message on %s the worker may publish on %s", heard.subject, reply)
			}
		}
	}
}

func TestWithoutAPasswordNobodyComesIn(t *testing.T) {
	_, address := startNATS(t, natsFile(t, "nats-server.conf"))
	for name, opts := range map[string][]nats.Option{
		"nobody": nil, "a wrong password": {nats.UserInfo("worker", "frontdoor")}, "no such user": {nats.UserInfo("root", "root")},
	} {
		nc, err := nats.Connect("nats://"+address, opts...)
		if err == nil {
			nc.Close()
		}
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
