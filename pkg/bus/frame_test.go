package bus

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/bus/frame"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func goldenCalls() []*CallFrame {
	return []*CallFrame{
		{Seq: 1, ID: "call_1", Server: "everything", Tool: "echo", Budget: 60 * time.Second, Principal: "ci", Payload: []byte(`{"n":9007199254740993}`)},
		{
			Seq: 0xfedcba9876543210, ID: "call_2", Method: "resources/read", Server: "s p a c e", Budget: 1500 * time.Microsecond,
			Principal: "ana", Owner: "team", Groups: []string{"a", "b"}, ToolDigest: "sha256:00", TraceParent: "00-x-y-01", TraceState: "k=v",
			Attempt: 2, Progress: true, Safe: true, Payload: []byte("{}"),
		},
		{
			Seq: 3, ID: "call_3", Server: "pay", Tool: "send", Principal: "ci", ToolDigest: "sha256:01", Attempt: 1, Approval: "appr_3",
			Warrant: []byte("\x01signed\x00\xff"), Payload: []byte(`{"amount":9007199254740992}`),
		},
		{Seq: 4, ID: "call_4", Server: "s", Tool: "ask", Extra: []byte(`{"requestState":"s-1"}`), Payload: []byte(`{}`)},
		{Seq: 5, ID: "call_5", Server: "s", Tool: "talk", Session: "ROOM", Clock: "2026-01-31T12:00:00Z", Seed: "-7", Lease: "episode_1", Hears: true, Payload: []byte(`{}`)},
	}
}

func goldenReplies() []ReplyFrame {
	return []ReplyFrame{
		{Seq: 1, Kind: ReplyResult, Worker: "w_1", Took: 42 * time.Microsecond, Started: true, Payload: []byte(`{"content":[]}`)},
		{Seq: 2, Kind: ReplyFirst, Worker: "w_1", ToolError: true, Started: true, Total: 1 << 33, Payload: []byte("begin")},
		{Seq: 4, Kind: ReplyResult, Worker: "w_1", Input: true, Started: true, Payload: []byte(`{"resultType":"input_required"}`)},
		{Seq: 2, Kind: ReplyPart, Offset: 5, Payload: []byte("rest")},
		{Seq: 5, Kind: ReplySaid, Worker: "w_1", Offset: 3, Payload: []byte(`{"method":"roots/list","params":{}}`)},
	}
}

// The wire format is a promise to other versions. Changing the golden file requires a new wire
// version, or a field that older readers skip.
func TestWireFormatMatchesTheGoldenFile(t *testing.T) {
	var calls, replies, controls []byte
	for _, f := range goldenCalls() {
		calls = AppendCall(calls, f)
	}
	for _, f := range goldenReplies() {
		replies = AppendReply(replies, &f)
	}
	controls = AppendControl(controls, &ControlFrame{Kind: ControlGrant, Seq: 7, Offset: 262144, Length: 4 << 20})
	controls = AppendControl(controls, &ControlFrame{Kind: ControlAnswer, Seq: 5, Offset: 3, Payload: []byte(`{"result":{}}`)})
	for name, got := range map[string][]byte{"calls": calls, "replies": replies, "controls": controls} {
		path := filepath.Join("testdata", name+".golden")
		text := hex.Dump(got)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s (-golden +now):\n%s", name, diff)
		}
	}
}

func TestFramesRoundTrip(t *testing.T) {
	var msg []byte
	for _, f := range goldenCalls() {
		msg = AppendCall(msg, f)
	}
	var got []*CallFrame
	if err := ReadCalls(msg, func(f *CallFrame) { got = append(got, f) }); err != nil {
		t.Fatal(err)
	}
	want := goldenCalls()
	for _, f := range want[:len(want)-1] {
		f.More = true // another follows
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-sent +read):\n%s", diff)
	}
	msg = nil
	for _, f := range goldenReplies() {
		msg = AppendReply(msg, &f)
	}
	var replies []ReplyFrame
	if err := ReadReplies(msg, func(f *ReplyFrame) { replies = append(replies, *f) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goldenReplies(), replies); diff != "" {
		t.Errorf("replies (-sent +read):\n%s", diff)
	}
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	dst, start := beginFrame(nil)
	dst = frame.AppendFixed(dst, tagSeq, 9)
	dst = frame.AppendString(dst, 200, "from a later version")
	dst = frame.AppendString(dst, tagServer, "s")
	msg := frame.End(dst, start, []byte("{}"))
	var got *CallFrame
	if err := ReadCalls(msg, func(f *CallFrame) { got = f }); err != nil {
		t.Fatal(err)
	}
	if got.Seq != 9 || got.Server != "s" || string(got.Payload) != "{}" {
		t.Errorf("read %+v", got)
	}
}

func TestBrokenMessagesAreRefused(t *testing.T) {
	good := AppendCall(nil, goldenCalls()[0])
	for name, msg := range map[string][]byte{
		"empty":         nil,
		"other version": append([]byte{wireVersion + 1}, good[1:]...),
		"cut":           good[:len(good)-1],
		"head only":     good[:5],
		"long field":    {wireVersion, 0, 0, 0, 2, 0, 0, 0, 0, tagID, 200},
		"short seq":     {wireVersion, 0, 0, 0, 3, 0, 0, 0, 0, tagSeq, 1, 1},
	} {
		if err := ReadCalls(msg, func(*CallFrame) {}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzFrames(f *testing.F) {
	for _, c := range goldenCalls() {
		f.Add(AppendCall(nil, c))
	}
	for _, r := range goldenReplies() {
		f.Add(AppendReply(nil, &r))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		before := bytes.Clone(msg)
		var again []byte
		err := ReadCalls(msg, func(c *CallFrame) { again = AppendCall(again, c) })
		if err == nil && len(again) > 0 {
			var third []byte
			if err := ReadCalls(again, func(c *CallFrame) { third = AppendCall(third, c) }); err != nil || !bytes.Equal(again, third) {
				t.Fatalf("a frame that was read is written as another: %v", err)
			}
		}
		_ = ReadReplies(msg, func(*ReplyFrame) {})
		_ = ReadControls(msg, func(*ControlFrame) {})
		if !bytes.Equal(before, msg) {
			t.Fatal("reading changed the message")
		}
	})
}

func TestTokensOfNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"everything", "a.b", "a b", "a*", ">", "", "A", "a", "ü", strings.Repeat("x", 65), "=aaaaaaaaaaaaaaaaaaaaaaaaaa", "a/b", "a\nb"} {
		tok := Token(name)
		if strings.ContainsAny(tok, ".*> \n\t") || tok == "" {
			t.Errorf("Token(%q) = %q cannot stand in a subject", name, tok)
		}
		if other, ok := seen[tok]; ok {
			t.Errorf("%q and %q share %q", name, other, tok)
		}
		seen[tok] = name
	}
	if Token("everything") != "everything" {
		t.Error("a plain name must stand for itself")
	}
}
