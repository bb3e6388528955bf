package deploy_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// commands are headers by which a plain message gives a command to a stream, one message
// each. TARGET stands for a subject on which the sender may not publish, and STREAM for
// its stream.
var commands = []nats.Header{
	{"Nats-Expected-Stream": {"STREAM"}},
	{"Nats-Msg-Id": {"stolen"}},
	{"Nats-Rollup": {"sub"}}, {"Nats-Rollup": {"all"}},
	{"Nats-TTL": {"1s"}}, {"Nats-TTL": {"never"}},
	{"Nats-Expected-Last-Sequence": {"1"}}, {"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {"TARGET"}},
	{"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {"TARGET"}},
	{"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {"TARGET"}, "Nats-Schedule-TTL": {"1s"}},
	{"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {"TARGET"}, "Nats-Schedule-Source": {"TARGET"}},
	{"Nats-Schedule-Next": {"purge"}, "Nats-Scheduler": {"TARGET"}},
	{"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
	{"Nats-Incr": {"+1"}}, {"Nats-Counter-Sources": {"{}"}},
	{"Nats-Marker-Reason": {"Purge"}}, {"KV-Operation": {"PURGE"}}, {"KV-Operation": {"DEL"}},
	{"Nats-Stream": {"STREAM"}, "Nats-Subject": {"TARGET"}, "Nats-Sequence": {"1"}}, {"Nats-Stream-Source": {"STREAM 1 > >"}},
	{"Nats-Required-Api-Level": {"0"}}, {"Status": {"100"}, "Nats-Last-Stream": {"1"}, "Nats-Consumer-Stalled": {"TARGET"}},
}

// A stream obeys headers of messages on its subjects. A user without permission to publish on
// any of them cannot write through a header. A user with permission for some cannot move
// messages from other subjects, create messages on subjects of others, or remove anything but
// rows of tables that the role writes anyway.
func TestAStolenRoleWritesNoStreamByHeaders(t *testing.T) {
	roles := listed(t)
	for _, role := range stolenRoles {
		// Each role has a separate server: a stream may still be storing the messages of one role
		// when the next one begins.
		address := provisioned(t)
		js := operator(t, address)
		all := streams(t, js)
		kept := map[string]string{} // the subject of a message of the operator, by stream
		for name, config := range all {
			subject := strings.NewReplacer("*", "kept", ">", "kept.kept").Replace(config.Subjects[0])
			if _, err := js.Publish(t.Context(), subject, []byte("kept")); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			kept[name] = subject
		}
		s, before, sent := connectAs(t, address, role), states(t, js), 0
		may := func(subject string) bool {
			return slices.ContainsFunc(roles[role].publish, func(p string) bool { return covers(p, subject) })
		}
		for _, pattern := range roles[role].publish {
			if strings.HasPrefix(pattern, "$JS.") {
				continue
			}
			for name := range all {
				target := kept[name]
				if may(target) {
					target = "callyard.v1.call.x1"
				}
				if role != "worker" && !slices.Contains([]string{"callyard_audit", "callyard_calls", "callyard_ledger"}, name) {
					continue // storing each message takes a disk write
				}
				for _, header := range commands {
					m := &nats.Msg{Subject: literal(pattern), Data: []byte("stolen"), Header: nats.Header{}}
					for key, values := range header {
						m.Header[key] = []string{strings.NewReplacer("TARGET", target, "STREAM", name).Replace(values[0])}
					}
					if err := s.nc.PublishMsg(m); err != nil {
						t.Fatal(err)
					}
					sent++
				}
			}
		}
		if err := s.nc.FlushTimeout(within); err != nil {
			t.Fatal(err)
		}
		after := states(t, js)
		written := 0
		for name, config := range all {
			writes := slices.ContainsFunc(config.Subjects, func(p string) bool { return may(literal(p)) || may(kept[name]) }) || slices.ContainsFunc(roles[role].publish, func(p string) bool {
				return slices.ContainsFunc(config.Subjects, func(c string) bool { return covers(c, literal(p)) })
			})
			if !writes {
				if !reflect.DeepEqual(before[name], after[name]) {
					t.Errorf("%s, which may not write %s, changed it: %+v, before %+v", role, name, after[name], before[name])
				}
				continue
			}
			written++
			stream, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := stream.GetLastMsgForSubject(t.Context(), kept[name]); !config.AllowRollup && (err != nil || string(m.Data) != "kept") {
				t.Errorf("%s removed what lay in %s on %s: %v", role, name, kept[name], err)
			}
			info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
			if err != nil {
				t.Fatal(err)
			}
			for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
				if subject != kept[name] && !slices.ContainsFunc(stolenRoles, func(role string) bool {
					return slices.ContainsFunc(roles[role].publish, func(p string) bool { return covers(p, subject) })
				}) {
					t.Errorf("after %s, %s has a message on %s", role, name, subject)
				}
			}
		}
		if now := streams(t, js); !reflect.DeepEqual(all, now) {
			t.Errorf("%s changed the streams: %v, before %v", role, now, all)
		}
		if role == "worker" && written != 0 || role != "worker" && written == 0 {
			t.Errorf("%s writes %d streams", role, written)
		}
		t.Logf("%s sent %d messages with commands; it writes %d of %d streams", role, sent, written, len(all))
	}
}

// states returns the content of the streams: the number of messages, and the sequence range.
func states(t testing.TB, js jetstream.JetStream) map[string]string {
	t.Helper()
	found := map[string]string{}
	list := js.ListStreams(t.Context())
	for s := range list.Info() {
		text, err := json.Marshal([]uint64{s.State.Msgs, s.State.Bytes, s.State.FirstSeq, s.State.LastSeq, uint64(s.State.NumDeleted), s.State.NumSubjects, uint64(s.State.Consumers)})
		if err != nil {
			t.Fatal(err)
		}
		found[s.Config.Name] = string(text)
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
