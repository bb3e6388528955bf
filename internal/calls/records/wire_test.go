package records

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

// samples are records with every field in some of them.
func samples() []Record {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8000000, time.UTC)
	rnd := rand.New(rand.NewPCG(1, 2))
	ns := at.UnixNano()
	return []Record{
		{ID: schema.CallID(idAt(at, rnd)), Principal: "agent", Owner: "team-a", Server: "files", Tool: "read", State: schema.StateSucceeded, Arguments: DigestOf([]byte("a")), ArgumentBytes: 12,
			ResultBytes: 345, Admitted: ns, Started: ns + 1000, Ended: ns + 90_000, Changed: ns + 90_000, Took: 80 * time.Microsecond, Worker: "worker_1", Attempt: 1, FrontDoor: "frontdoor_x"},
		{ID: schema.CallID(idAt(at, rnd)), Principal: "agent", Server: "files", Tool: "rm", Method: schema.MethodCallTool, State: schema.StateFailed, ToolError: true, Durable: true, Replayed: true,
			Arguments: DigestOf([]byte("b")), Result: DigestOf([]byte("c")), Error: schema.KindServerFailed, Detail: "The server is not there.",
			Admitted: ns - 5_000_000, Ended: ns + 10, Changed: ns + 11, Attempt: 3, Batch: "batch_1", Index: 999_999, CustomID: "row é", Approval: "appr_1", FrontDoor: "frontdoor_x"},
		{ID: schema.CallID(idAt(at, rnd)), Tenant: "billing", State: schema.StateUnknown, CancelRequested: true, Error: schema.KindOutcomeUnknown, Admitted: ns, Ended: ns + 1, Changed: ns + 1, FrontDoor: "frontdoor_x"},
		{ID: schema.CallID("lane" + idAt(at, rnd)[4:]), State: schema.StateHeld, Admitted: ns, Changed: ns, FrontDoor: "frontdoor_x"},
	}
}

// tracedSamples are records of calls that were traced.
func tracedSamples() []Record {
	traced := samples()[:2]
	for i := range traced {
		traced[i].Trace = TraceID{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, byte(0x36 + i)}
	}
	traced[1].ReplayOf = traced[0].ID
	return traced
}

func packOf(t testing.TB, writer string, records []Record) []byte {
	t.Helper()
	p := newPacker(writer, nil)
	for i := range records {
		k, ok := keyOf(string(records[i].ID))
		if !ok {
			t.Fatalf("%q has no key", records[i].ID)
		}
		p.add(k, &records[i])
	}
	b := p.message()
	if len(b) > p.size() {
		t.Errorf("a message of %d bytes was said to have at most %d", len(b), p.size())
	}
	return b
}

func unpackAll(data []byte) (all []Record, err error) {
	err = unpack(data, func(key) bool { return true }, func(_ key, r *Record) { all = append(all, *r) })
	return all, err
}

func TestMessageRoundTripsRecords(t *testing.T) {
	for _, want := range [][]Record{samples(), tracedSamples()} {
		got, err := unpackAll(packOf(t, "frontdoor_x", want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestWireFormatIsStable reads messages that were stored by earlier versions, too:
// message.golden is from before records had traces.
func TestWireFormatIsStable(t *testing.T) {
	for name, records := range map[string][]Record{"message.golden": samples(), "message-traced.golden": tracedSamples()} {
		t.Run(name, func(t *testing.T) { checkGoldenStable(t, name, records) })
	}
}

func checkGoldenStable(t *testing.T, name string, records []Record) {
	b := packOf(t, "frontdoor_x", records)
	var text strings.Builder
	for len(b) > 0 {
		n := min(len(b), 32)
		fmt.Fprintln(&text, hex.EncodeToString(b[:n]))
		b = b[n:]
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("messages that are stored already would not be read (-want +got):\n%s", diff)
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(string(want), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpackAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(records, got); diff != "" {
		t.Errorf("a stored message reads otherwise (-want +got):\n%s", diff)
	}
}

func TestFieldsOfALaterVersionArePassedOver(t *testing.T) {
	p := newPacker("w", nil)
	one := samples()[3]
	k, _ := keyOf(string(one.ID))
	p.add(k, &one)
	longer := append(append([]byte{}, p.one...), "and something new"...)
	p.records = append([]byte{byte(len(longer))}, longer...)
	got, err := unpackAll(p.message())
	if err != nil || len(got) != 1 || got[0].ID != one.ID || got[0].State != schema.StateHeld {
		t.Errorf("%v %v", got, err)
	}
}

// TestOldReaderSkipsTraceFields reads a record with a trace as a program does that
// does not know the flag: what follows the fields that it knows is passed over.
func TestOldReaderSkipsTraceFields(t *testing.T) {
	traced := tracedSamples()
	p := newPacker("frontdoor_x", nil)
	for i := range traced {
		k, _ := keyOf(string(traced[i].ID))
		p.add(k, &traced[i])
		flags, n := binary.Uvarint(p.one)
		if flags&flagTrace == 0 {
			t.Error("the record does not say that it has a trace")
		}
		one := append(binary.AppendUvarint(nil, flags&^flagTrace), p.one[n:]...)
		p.records = append(binary.AppendUvarint(nil, uint64(len(one))), one...)
		got, err := unpackAll(p.message())
		want := traced[i]
		want.Trace = TraceID{}
		if diff := cmp.Diff([]Record{want}, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
		p.reset()
	}
}

func TestRecordWithoutTraceHasNoOverhead(t *testing.T) {
	one := samples()[0]
	k, _ := keyOf(string(one.ID))
	size := func(r *Record) int {
		p := newPacker("w", nil)
		p.add(k, r)
		return len(p.records)
	}
	without, traced := size(&one), one
	traced.Trace = TraceID{1}
	if more := size(&traced) - without; more < len(TraceID{}) || more > len(TraceID{})+2 {
		t.Errorf("a trace takes %d bytes", more)
	}
	p := newPacker("w", nil)
	if allocs := testing.AllocsPerRun(100, func() { p.reset(); p.add(k, &traced) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	if none := one.View().TraceID; none != "" {
		t.Errorf("a call without a trace shows %q", none)
	}
}

func TestATornMessageIsAnError(t *testing.T) {
	whole := packOf(t, "frontdoor_x", samples())
	none, err := unpackAll(packOf(t, "frontdoor_x", nil))
	if err != nil || len(none) != 0 {
		t.Fatalf("a message without records: %v %v", none, err)
	}
	complete := 0
	for n := range whole {
		if _, err := unpackAll(whole[:n]); err == nil {
			complete++ // it is cut between two records
		}
	}
	if complete != len(samples()) {
		t.Errorf("%d of the cut messages are taken for whole", complete)
	}
	if _, err := unpackAll([]byte{2, 0, 0, 0}); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("another version: %v", err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(packOf(f, "frontdoor_x", samples()))
	f.Add(packOf(f, "", samples()[:1]))
	f.Add(packOf(f, "frontdoor_x", tracedSamples()))
	f.Add([]byte{wireVersion, 0, 0xff, 0xff, 0x03})
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := unpackAll(data)
		if err != nil {
			return
		}
		// What was read can be written, and reads the same.
		writer := ""
		for i := range records {
			writer = records[i].FrontDoor
			if records[i].Error == "" {
				records[i].Detail = "" // an empty kind means that there is no error
			}
			if _, ok := keyOf(string(records[i].ID)); !ok {
				return // its prefix is no prefix; only ours are written
			}
			if records[i].Batch == "" {
				records[i].Index, records[i].CustomID = 0, ""
			}
		}
		again, err := unpackAll(packOf(t, writer, records))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(records, again); diff != "" {
			t.Error(diff)
		}
	})
}
