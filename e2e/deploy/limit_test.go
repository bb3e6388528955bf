package deploy_test

import (
	"bytes"
	"testing"
)

// NATS checks the publisher, but not the delivery subject of a consumer: a user who may follow a
// stream can have its messages delivered to any subject. docs/how-to/deployment.md says so, and
// workers drop messages without a router's reply subject. If this test fails one day,
// NATS has closed the gap and the document can be changed.
func TestNATSAllowsAnyDeliverySubjectOfAConsumer(t *testing.T) {
	address := provisioned(t)
	approver, worker := connectAs(t, address, "approver"), connectAs(t, address, "worker")
	calls, err := worker.nc.SubscribeSync("callyard.v1.call.w1")
	if err != nil || worker.denied("callyard.v1.call.w1") {
		t.Fatalf("the worker cannot listen: %v", err)
	}
	ask := func(subject, body string) {
		t.Helper()
		m, err := approver.nc.Request(subject, []byte(body), within)
		if err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		if bytes.Contains(m.Data, []byte(`"error"`)) {
			t.Fatalf("%s: %s", subject, m.Data)
		}
	}
	ask("callyard.v1.approval.a1.state", "not a call")
	const consumer = "$JS.API.CONSUMER.CREATE.callyard_ledger.c1.callyard.v1.approval.a1.state"
	ask(consumer, `{"stream_name":"callyard_ledger","config":{"name":"c1","deliver_subject":"callyard.v1.call.w1","ack_policy":"none","deliver_policy":"all","filter_subject":"callyard.v1.approval.a1.state"}}`)
	m, err := calls.NextMsg(within)
	if err != nil {
		t.Fatal(err)
	}
	// It lacks the reply subject of a front door, by which workers recognize it.
	if string(m.Data) != "not a call" || len(m.Reply) < 8 || m.Reply[:8] != "$JS.ACK." {
		t.Errorf("what came is %q with the reply subject %q", m.Data, m.Reply)
	}
}
