package adapt

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a source that answers what its tool's name says.
type fake struct{ idle int }

func (f *fake) Offer(context.Context) (*Offer, error) {
	return &Offer{Title: "Fake", Version: "3", Tools: []Tool{{Name: "echo", Raw: json.RawMessage(`{"name":"echo","x":1.0}`)}}}, nil
}

func (f *fake) Call(_ context.Context, tool string, arguments json.RawMessage) ([]byte, error) {
	switch tool {
	case "echo":
		return append(append([]byte(`{"got":`), arguments...), '}'), nil
	case "large":
		return nil, &TooLarge{10}
	case "broken":
		return nil, errBroken
	}
	return nil, ErrUnknownTool
}

func (f *fake) CloseIdle() { f.idle++ }

var errBroken = errors.New("the line is cut")

func post(t *testing.T, client *http.Client, body string) (*http.Response, string) {
	t.Helper()
	resp, err := client.Post(Address, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func TestClientAnswersMCPRequests(t *testing.T) {
	src := &fake{}
	client := Client(src)
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`:      `"tools":[{"name":"echo","x":1.0}]`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`: `"supportedVersions":["2026-07-28"]`,
		`{"jsonrpc":"2.0","id":4294967296,"method":"tools/call","params":{"name":"echo","arguments":{ "b":1.0,"a":9007199254740993 }}}`: `{"jsonrpc":"2.0","id":4294967296,"result":{"got":{ "b":1.0,"a":9007199254740993 }}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`:                                                       `{"got":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}}`:                                                       `"error":{"code":-32602`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`:                                                                    `"error":{"code":-32602`,
		`{"jsonrpc":"2.0","id":"a","method":"initialize"}`:                                                                              `{"jsonrpc":"2.0","id":"a","error":{"code":-32601`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                                                                      `"result":{}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`:                                                                          ``,
		`{`: `"error":{"code":-32700`,
	} {
		resp, text := post(t, client, body)
		if !strings.Contains(text, want) || text != "" && !json.Valid([]byte(text)) {
			t.Errorf("%s\ngot  %s\nwant %s", body, text, want)
		}
		if want == "" && resp.StatusCode != http.StatusAccepted {
			t.Errorf("%s: status %d", body, resp.StatusCode)
		}
	}
	resp, err := client.Get(Address)
	if err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v, %v", resp, err)
	}
	if client.CloseIdleConnections(); src.idle != 1 {
		t.Error("idle connections are not closed")
	}
}

func TestOversizedResponseDeclaresItsLength(t *testing.T) {
	client := Client(&fake{})
	resp, _ := post(t, client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large"}}`)
	if resp.ContentLength < 1<<40 {
		t.Errorf("it announces %d bytes", resp.ContentLength)
	}
}

func TestErrorsOfTheSourceAreReturnedUnchanged(t *testing.T) {
	_, err := Client(&fake{}).Post(Address, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"broken"}}`))
	if !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func FuzzAnyResponseBecomesAValidResult(f *testing.F) {
	f.Add(200, "application/json", `{"a":[1,"\u00e9"]}`, true)
	f.Add(404, "text/html; charset=utf-8", "\xff", false)
	f.Add(200, "application/json", `{"a":1} {}`, true)
	f.Add(-1, "image/png", "x", false)
	f.Fuzz(func(t *testing.T, status int, kind, body string, wrap bool) {
		resp := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}, "Location": {body}}}
		raw := Result("tool", resp, []byte(body), wrap)
		var got struct {
			Content []struct{ Type string }
			IsError bool
		}
		if err := json.Unmarshal(raw, &got); err != nil || len(got.Content) == 0 || got.IsError == (status/100 == 2) {
			t.Fatalf("%v: %s", err, raw)
		}
	})
}
