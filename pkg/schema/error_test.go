package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAnErrorFormatsItsCauseAndKeepsItOutOfTheJSON(t *testing.T) {
	cause := fmt.Errorf("reading: %w", io.ErrUnexpectedEOF)
	e := Errorf(KindUnavailable, "The store cannot be read: %w", cause)
	if e.Error() != "The store cannot be read: reading: unexpected EOF" || !errors.Is(e, io.ErrUnexpectedEOF) {
		t.Errorf("%v", e)
	}
	text, err := json.Marshal(Errorf(KindInternal, "It failed."))
	if err != nil || string(text) != `{"kind":"internal","detail":"It failed."}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestErrorRoundTripsThroughJSON(t *testing.T) {
	sent := &Error{
		Kind: KindProtocol, Detail: "The server failed.", CallID: "call_1", Retryable: true, RetryAfter: time.Second, CancelRequested: true,
		Faults: []Fault{{Pointer: "/a", Message: "It must be a number."}}, RPC: &RPCError{Code: -32000, Message: "no", Data: json.RawMessage(`{"x":1}`)},
	}
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	got := &Error{}
	if err := json.Unmarshal(text, got); err != nil {
		t.Fatal(err)
	}
	want, have := *sent, *got
	if !reflect.DeepEqual(have.Faults, want.Faults) || !reflect.DeepEqual(have.RPC, want.RPC) {
		t.Errorf("%+v, %+v", have.Faults, have.RPC)
	}
	have.Faults, have.RPC, want.Faults, want.RPC = nil, nil, nil, nil
	if again, err := json.Marshal(got); err != nil || string(again) != string(text) || fmt.Sprintf("%+v", have) != fmt.Sprintf("%+v", want) {
		t.Errorf("%s became %s, %v", text, again, err)
	}
}

func TestWithCallReturnsACopy(t *testing.T) {
	shared := Errorf(KindQuota, "Too many.")
	named := shared.WithCall("call_1")
	if shared.CallID != "" || named.CallID != "call_1" || named.Kind != KindQuota || named.Detail != shared.Detail {
		t.Errorf("%+v, %+v", shared, named)
	}
}

func TestCauseOfUnknownErrorIsHiddenFromCallers(t *testing.T) {
	secret := errors.New("password hunter2")
	e := AsError(secret)
	if e.Kind != KindInternal || strings.Contains(e.Error(), "hunter2") || !errors.Is(e, secret) {
		t.Errorf("%+v", e)
	}
	wrapped := Errorf(KindConflict, "It exists.")
	if AsError(fmt.Errorf("adding: %w", wrapped)) != wrapped {
		t.Error("an *Error inside another error is not found")
	}
	if AsError(nil) != nil || KindOf(nil) != "" || KindOf(secret) != KindInternal || KindOf(wrapped) != KindConflict {
		t.Error("kinds of nil, of a foreign error, or of an *Error")
	}
}
