package deploy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// attackerConn is a connection of an attacker with the password of a role.
type attackerConn struct {
	nc *nats.Conn
	t  testing.TB
}

func connectAs(t testing.TB, address, role string) attackerConn {
	t.Helper()
	nc, err := nats.Connect("nats://"+address, nats.UserInfo(role, role), nats.CustomInboxPrefix("_INBOX."+role), nats.NoReconnect(), nats.PermissionErrOnSubscribe(true),
		// The test reads denials below, so they are not logged.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatalf("signing in as %s: %v", role, err)
	}
	t.Cleanup(nc.Close)
	return attackerConn{nc, t}
}

// denied reports whether the server denied the last message. The error arrives before
// the answer to the flush.
func (s attackerConn) denied(subject string) bool {
	s.t.Helper()
	if err := s.nc.FlushTimeout(within); err != nil {
		s.t.Fatal(err)
	}
	err := s.nc.LastError()
	return err != nil && errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}

func (s attackerConn) publish(subject string) bool {
	s.t.Helper()
	if err := s.nc.Publish(subject, []byte("x")); err != nil {
		s.t.Fatal(err)
	}
	return s.denied(subject)
}

func (s attackerConn) subscribe(subject, group string) bool {
	s.t.Helper()
	sub, err := s.nc.QueueSubscribeSync(subject, group)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails if it was denied
	return s.denied(subject)
}

// requests are the subjects of all requests that JetStream answers. %s stands for a
// stream, then for a consumer, then for a filter.
var requests = []string{
	server.JSApiAccountInfo, server.JSApiStreams, server.JSApiStreamList, server.JSApiLeaderStepDown, server.JSApiRemoveServer, server.JSApiEvacuateServer, server.JSApiMetaRescue,
	server.JSApiStreamCreateT, server.JSApiStreamUpdateT, server.JSApiStreamInfoT, server.JSApiStreamDeleteT, server.JSApiStreamPurgeT, server.JSApiStreamSnapshotT,
	server.JSApiStreamRestoreT, server.JSApiMsgDeleteT, server.JSApiMsgGetT, server.JSApiStreamRemovePeerT, server.JSApiStreamEvacuatePeerT, server.JSApiStreamCancelMoveT,
	server.JSApiStreamLeaderStepDownT, server.JSApiAccountPurgeT, server.JSApiServerStreamMoveT, server.JSApiServerStreamCancelMoveT,
	server.JSApiConsumerCreateT, server.JSApiConsumerCreateT + ".%s", server.JSApiConsumerCreateExT, server.JSApiDurableCreateT, server.JSApiConsumersT, server.JSApiConsumerListT,
	server.JSApiConsumerInfoT, server.JSApiConsumerDeleteT, server.JSApiConsumerPauseT, server.JSApiRequestNextT, server.JSApiConsumerResetT, server.JSApiConsumerUnpinT,
	server.JSApiConsumerLeaderStepDownT, server.JSApiConsumerRemovePeerT, server.JSApiConsumerEvacuatePeerT,
	server.JSDirectMsgGetT, server.JSDirectGetLastBySubjectT,
	"$JS.ACK.%s.%s.1.1.1.1.0", "$JS.ACK._.hash.%s.%s.1.1.1.1.0", "$JS.FC.%s.%s.x", "$JS.SNAPSHOT.ACK.%s.x", "$JS.SNAPSHOT.RESTORE.%s.x",
}

// others are subjects of NATS itself.
var others = []string{
	"$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO", "$SYS.ACCOUNT.CALLYARD.CONNECT", "$SRV.PING", "$MQTT.sub", "$JSC.R.x", "$NRG.x", "_R_.x",
	"_INBOX.x", "_INBOX.frontdoor.x", "_INBOX.approver.x", "_INBOX.worker.x", "_INBOX.init.x", "_INBOX.operator.x", "anything", "callyard.v1.news", "callyard.v2.call.w1",
}

// filled fills the placeholders of a request; filters are subjects for the last one.
func filled(request, stream string, filters []string) []string {
	switch strings.Count(request, "%s") {
	case 0:
		return []string{request}
	case 1:
		return []string{fmt.Sprintf(request, stream)}
	}
	if request == server.JSDirectGetLastBySubjectT {
		var all []string
		for _, f := range filters {
			all = append(all, fmt.Sprintf(request, stream, f))
		}
		return all
	}
	if strings.Count(request, "%s") == 2 {
		return []string{fmt.Sprintf(request, stream, "c1")}
	}
	var all []string
	for _, f := range filters {
		all = append(all, fmt.Sprintf(request, stream, "c1", f))
	}
	return all
}

// literal returns a subject that matches a pattern.
func literal(pattern string) string {
	pattern, _, _ = strings.Cut(pattern, " ") // a queue group
	return strings.NewReplacer("*", "x1", ">", "x1.y2").Replace(pattern)
}

// operator returns a connection with all permissions, to inspect the result.
func operator(t testing.TB, address string) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(connectAs(t, address, "operator").nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// streams returns the configurations of all streams.
func streams(t testing.TB, js jetstream.JetStream) map[string]jetstream.StreamConfig {
	t.Helper()
	found := map[string]jetstream.StreamConfig{}
	list := js.ListStreams(t.Context())
	for s := range list.Info() {
		found[s.Config.Name] = s.Config
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	if len(found) < 15 {
		t.Fatalf("there are only the streams %v", found)
	}
	return found
}

// subjectsOf returns all subjects that could be useful for an attacker.
func subjectsOf(roles map[string]allowed, all map[string]jetstream.StreamConfig) []string {
	subjects := slices.Clone(others)
	filters := []string{">", "callyard.v1.x1"}
	for _, r := range roles {
		for _, pattern := range append(slices.Clone(r.publish), r.subscribe...) {
			if !strings.HasPrefix(pattern, "$JS.API.") {
				subjects = append(subjects, literal(pattern))
			}
		}
	}
	for _, config := range all {
		for _, s := range config.Subjects {
			filters = append(filters, s, literal(s))
			subjects = append(subjects, literal(s))
		}
	}
	filters = unique(filters)
	for _, request := range requests {
		for name, config := range all {
			own := append(slices.Clone(config.Subjects), ">", literal(config.Subjects[0]))
			subjects = append(subjects, filled(request, name, own)...)
		}
		// Streams that do not exist, ours and others.
		subjects = append(subjects, filled(request, "mine", filters)...)
		subjects = append(subjects, filled(request, "callyard_x", []string{">"})...)
		for _, s := range filled(request, "callyard_calls", []string{">"}) {
			subjects = append(subjects, strings.Replace(s, "$JS.", "$JS.east.", 1)) // through a domain
		}
	}
	return unique(subjects)
}

// provisioned starts NATS with the shipped users and every stream.
func provisioned(t testing.TB) string {
	t.Helper()
	_, address := startNATS(t, natsFile(t, "nats-server.conf"))
	provision(t, "nats://"+address)
	return address
}

// The region is not a user of nats-server.conf: see e2e/rolling.
var stolenRoles = []string{"frontdoor", "approver", "worker"}

func TestStolenRolePublishesOnlyToListedSubjects(t *testing.T) {
	address, roles := provisioned(t), listed(t)
	js := operator(t, address)
	before := streams(t, js)
	subjects := subjectsOf(roles, before)
	mismatches := 0
	for _, role := range stolenRoles {
		s := connectAs(t, address, role)
		for _, subject := range subjects {
			want := slices.ContainsFunc(roles[role].publish, func(p string) bool { return covers(p, subject) })
			if may := !s.publish(subject); may != want {
				mismatches++
				t.Errorf("%s publishes on %s: %t, the page says %t", role, subject, may, want)
			}
		}
	}
	t.Logf("%d subjects for each of %d users, %d mismatches", len(subjects), len(stolenRoles), mismatches)
	if len(subjects) < 1000 {
		t.Errorf("only %d subjects were tried", len(subjects))
	}
	if after := streams(t, js); !reflect.DeepEqual(before, after) {
		t.Errorf("the streams were changed: %v, before %v", after, before)
	}
}

func TestStolenRoleSubscribesOnlyToListedSubjects(t *testing.T) {
	address, roles := provisioned(t), listed(t)
	subjects := []string{">", "*", "*.>", "$JS.>", "$JS.API.>", "$KV.>", "$SYS.>", "_INBOX.>", "_INBOX.*.>", "callyard.>", "callyard.v1.>", "callyard.v1.*.*", "callyard.v1.journal.>", "callyard.v1.approval.>"}
	for _, r := range roles {
		for _, pattern := range append(slices.Clone(r.publish), r.subscribe...) {
			pattern, _, _ = strings.Cut(pattern, " ")
			subjects = append(subjects, pattern, literal(pattern))
		}
	}
	subjects = unique(subjects)
	mismatches := 0
	for _, role := range stolenRoles {
		s := connectAs(t, address, role)
		for _, subject := range subjects {
			// The allowed group comes first, because an error remains the last error until the next.
			for _, group := range []string{"w", "", "others"} {
				want := slices.ContainsFunc(roles[role].subscribe, func(p string) bool {
					p, only, grouped := strings.Cut(p, " ")
					return covers(p, subject) && (!grouped || group == only)
				})
				if may := !s.subscribe(subject, group); may != want {
					mismatches++
					t.Errorf("%s listens on %s in the group %q: %t, the page says %t", role, subject, group, may, want)
				}
			}
		}
	}
	t.Logf("%d subjects in 3 groups for each of %d users, %d mismatches", len(subjects), len(stolenRoles), mismatches)
}

// A role can subscribe to subjects on which it may publish. Its messages to itself there can name
// any reply subject.
func TestStolenRoleGainsNoReplyPermissions(t *testing.T) {
	address, roles := provisioned(t), listed(t)
	subjects := subjectsOf(roles, streams(t, operator(t, address)))
	for _, role := range stolenRoles {
		s, tried := connectAs(t, address, role), 0
		for _, hears := range roles[role].subscribe {
			subject := literal(hears)
			if !slices.ContainsFunc(roles[role].publish, func(p string) bool { return covers(p, subject) }) {
				continue
			}
			tried++
			sub, err := s.nc.SubscribeSync(subject)
			if err != nil {
				t.Fatal(err)
			}
			for _, reply := range subjects {
				if slices.ContainsFunc(roles[role].publish, func(p string) bool { return covers(p, reply) }) {
					continue
				}
				if err := s.nc.PublishRequest(subject, reply, []byte("x")); err != nil {
					t.Fatal(err)
				}
				if s.denied(reply) {
					continue // NATS accepts no message with this reply subject
				}
				if m, err := sub.NextMsg(within); err != nil || m.Reply != reply {
					t.Fatalf("%s sends itself %s: %v %v", role, subject, m, err)
				}
				if !s.publish(reply) {
					t.Errorf("%s, sent a message on %s, may publish on %s", role, subject, reply)
				}
			}
		}
		if tried == 0 && role == "worker" {
			t.Error("the worker hears nothing that it may send: the test tries nothing")
		}
	}
}

// A stolen password requests all content of the streams, in every way that JetStream
// supports, with its own inbox as the reply subject.
func TestAStolenRoleReadsOnlyTheStreamsOfItsPage(t *testing.T) {
	address, roles := provisioned(t), listed(t)
	js := operator(t, address)
	all := streams(t, js)
	for name, config := range all {
		subject := literal(config.Subjects[0])
		if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: []byte("held in " + name), Header: nats.Header{"Callyard-Record": {"held in " + name}}}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, role := range stolenRoles {
		s := connectAs(t, address, role)
		inbox := s.nc.NewRespInbox()
		got, err := s.nc.SubscribeSync(inbox)
		if err != nil {
			t.Fatal(err)
		}
		if role != "worker" && s.denied(inbox) {
			t.Fatalf("%s cannot be answered", role)
		}
		ask := func(subject string, body any) {
			t.Helper()
			text, err := json.Marshal(body)
			if err == nil {
				err = s.nc.PublishRequest(subject, inbox, text)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		type object = map[string]any
		for name, config := range all {
			first := literal(config.Subjects[0])
			ask("$JS.API.STREAM.MSG.GET."+name, object{"seq": 1})
			ask("$JS.API.DIRECT.GET."+name, object{"seq": 1})
			ask("$JS.API.DIRECT.GET."+name+"."+first, nil)
			ask("$JS.API.STREAM.SNAPSHOT."+name, object{"deliver_subject": inbox})
			for _, filter := range append(slices.Clone(config.Subjects), first, ">") {
				consumer := object{"name": "c1", "deliver_subject": inbox, "ack_policy": "none", "deliver_policy": "all", "filter_subject": filter}
				ask("$JS.API.CONSUMER.CREATE."+name+".c1."+filter, object{"stream_name": name, "config": consumer})
				ask("$JS.API.CONSUMER.CREATE."+name+".c1", object{"stream_name": name, "config": consumer})
				ask("$JS.API.CONSUMER.CREATE."+name, object{"stream_name": name, "config": object{"deliver_subject": inbox, "ack_policy": "none", "deliver_policy": "all"}})
				durable := object{"durable_name": "d1", "deliver_subject": inbox, "ack_policy": "explicit", "deliver_policy": "all"}
				ask("$JS.API.CONSUMER.DURABLE.CREATE."+name+".d1", object{"stream_name": name, "config": durable})
			}
			// A new stream, or an existing one that is recreated or updated, with this one as its
			// source.
			for _, target := range append(slices.Sorted(maps.Keys(all)), "mine") {
				for _, draws := range []object{{"sources": []object{{"name": name}}}, {"mirror": object{"name": name}}} {
					draws["name"], draws["storage"], draws["republish"] = target, "memory", object{"src": ">", "dest": inbox}
					ask("$JS.API.STREAM.CREATE."+target, draws)
					ask("$JS.API.STREAM.UPDATE."+target, draws)
				}
			}
		}
		if err := s.nc.FlushTimeout(within); err != nil {
			t.Fatal(err)
		}
		// Consumers deliver after their responses, and the operator's own request is
		// answered after that.
		if _, err := js.AccountInfo(t.Context()); err != nil {
			t.Fatal(err)
		}
		read := map[string]bool{}
		for {
			m, err := got.NextMsgWithContext(contextUntilQuiet(t))
			if err != nil {
				break
			}
			text := string(m.Data) + fmt.Sprint(m.Header)
			var answer struct{ Message struct{ Data []byte } }
			if json.Unmarshal(m.Data, &answer) == nil {
				text += string(answer.Message.Data)
			}
			for name := range all {
				if strings.Contains(text, "held in "+name) {
					read[name] = true
				}
			}
		}
		for name := range all {
			want := slices.ContainsFunc(roles[role].publish, func(p string) bool {
				return covers(p, "$JS.API.STREAM.MSG.GET."+name) || covers(p, "$JS.API.DIRECT.GET."+name) || strings.HasPrefix(p, "$JS.API.DIRECT.GET."+name+".") || strings.HasPrefix(p, "$JS.API.CONSUMER.CREATE."+name+".")
			})
			// Only certain subjects of some streams are followed. Streams that can be read belong
			// to the role.
			if read[name] && !want {
				t.Errorf("%s reads %s", role, name)
			}
		}
		if role != "worker" && len(read) == 0 {
			t.Errorf("%s reads nothing: the test tries nothing", role)
		}
		if after := streams(t, js); !reflect.DeepEqual(all, after) {
			t.Errorf("%s changed the streams: %v, before %v", role, after, all)
		}
		t.Logf("%s reads %d of %d streams", role, len(read), len(all))
	}
}

// quietFor is longer than a server takes to deliver its messages. A value that is too short could
// miss a message on a slow machine, but would never cause a false failure.
const quietFor = time.Second

// contextUntilQuiet returns a context that ends when no message has arrived for quietFor.
func contextUntilQuiet(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), quietFor)
	t.Cleanup(cancel)
	return ctx
}

func TestWithoutPasswordAccessIsRefused(t *testing.T) {
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
