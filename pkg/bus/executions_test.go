package bus_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestMessagesOfASlotAreReadInTheOrderOfWriting(t *testing.T) {
	e, err := bus.OpenExecutions(t.Context(), bustest.Start(t).Connect(t, "test"), bus.ExecutionsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// More than one answer of the server holds, in bytes and in messages.
	const count = 1300
	large := bytes.Repeat([]byte("x"), 4<<10)
	for i := range count {
		if err := e.Append(t.Context(), 7, append([]byte{byte(i), byte(i >> 8)}, large...)); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			if err := e.Append(t.Context(), 8, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	var sequences []uint64
	read := func(from uint64, most int) (got []int) {
		sequences = nil
		n, err := e.Read(t.Context(), 7, from, most, func(s uint64, data []byte) {
			got = append(got, int(data[0])|int(data[1])<<8)
			sequences = append(sequences, s)
		})
		if err != nil || n != len(got) {
			t.Fatalf("%d read, %d seen, %v", n, len(got), err)
		}
		return got
	}
	var want []int
	for i := range count {
		want = append(want, i)
	}
	if diff := cmp.Diff(want, read(0, 0)); diff != "" {
		t.Fatal(diff)
	}
	all := sequences
	if got := read(all[500], 700); !cmp.Equal(got, want[500:1200]) {
		t.Errorf("from the middle: %d", len(got))
	}
	if got := read(all[count-1]+1, 0); len(got) != 0 {
		t.Errorf("after the end: %d", len(got))
	}
	if n, err := e.Read(t.Context(), 9, 0, 0, func(uint64, []byte) { t.Error("a message of an empty slot") }); n != 0 || err != nil {
		t.Errorf("an empty slot: %d %v", n, err)
	}
	if err := e.Append(t.Context(), 7, make([]byte, e.MaxBody()+2<<10)); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestSlotsAreFoundBackwardsAcrossGaps(t *testing.T) {
	e, err := bus.OpenExecutions(t.Context(), bustest.Start(t).Connect(t, "test"), bus.ExecutionsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := bus.ExecutionSlotOf(time.Now())
	want := []int64{now, now - 1, now - 5, now - 361, now - 40_000, 3}
	for _, slot := range want {
		if err := e.Append(t.Context(), slot, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	var got []int64
	for before := now + 1; ; before = got[len(got)-1] {
		slots, err := e.Slots(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		if len(slots) == 0 {
			break
		}
		got = append(got, slots...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestASmallDiskKeepsFewerRecordsAndSaysSo(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, JetStreamMaxStore: 48 << 20, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS is not ready")
	}
	var said logText
	c, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL(), Name: "test", Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e, err := bus.OpenExecutions(t.Context(), c, bus.ExecutionsOptions{MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "bytes=33554432") {
		t.Errorf("it says %q", said.String())
	}
	// What is old makes way.
	for range 60 {
		if err := e.Append(t.Context(), 1, make([]byte, 1<<20-2<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := e.Read(t.Context(), 1, 0, 0, func(uint64, []byte) {}); err != nil || n < 20 || n > 32 {
		t.Errorf("%d are left, %v", n, err)
	}
}

// logText takes a log that several goroutines write.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
