package bus_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestSmallDiskKeepsFewerRecordsAndReportsIt(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, JetStreamMaxStore: 48 << 20, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS is not ready")
	}
	var log said
	c, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL(), Name: "test", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e, err := bus.OpenStream(t.Context(), c, bus.StreamSpec{
		Name: bus.StreamExecutions, What: "call records", Subjects: []string{bus.SubjectRecord + "*.*"}, Logs: true, DropsOldest: true, MaxBytes: 1 << 30, MinBytes: 8 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "bytes=33554432") {
		t.Errorf("it says %q", log.String())
	}
	const subject = bus.SubjectRecord + "0.1"
	// New messages replace the oldest ones.
	for range 60 {
		if _, err := e.Put(t.Context(), bus.Message{Subject: subject, Data: make([]byte, 1<<20-2<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	if err := e.Scan(t.Context(), subject, func(bus.Message) { n++ }); err != nil || n < 20 || n > 32 {
		t.Errorf("%d are left, %v", n, err)
	}
}

func TestUnsuitableStreamSettingsAreRefused(t *testing.T) {
	s := bustest.Start(t)
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "callyard_ledger", Subjects: []string{"callyard.v1.approval.>"}, MaxMsgsPerSubject: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "callyard_audit", Subjects: []string{"callyard.v1.audit.>"}, MaxMsgsPerSubject: -1, Storage: jetstream.MemoryStorage}); err != nil {
		t.Fatal(err)
	}
	c := s.Connect(t, "test")
	if _, err := bus.OpenStream(t.Context(), c, bus.StreamSpec{Name: bus.StreamLedger, Subjects: []string{bus.SubjectApproval + "*.*"}}); err == nil || !strings.Contains(err.Error(), "must keep 1") {
		t.Errorf("ledger: %v", err)
	}
	if _, err := bus.OpenStream(t.Context(), c, bus.StreamSpec{Name: bus.StreamAudit, Subjects: []string{bus.SubjectAudit + "*"}, Logs: true}); err == nil || !strings.Contains(err.Error(), "file storage") {
		t.Errorf("audit: %v", err)
	}
}
