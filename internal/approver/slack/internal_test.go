package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
)

var update = flag.Bool("update", false, "write the golden files of this package")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is another:\n%s", file, got)
	}
}

func TestSecretValuesAreHiddenAtAnyDepth(t *testing.T) {
	for what, c := range map[string]struct{ schema, args, want string }{
		"nothing marked":   {`{}`, `{"b":1.50,"a":[1, 2]}`, `{"b":1.50,"a":[1,2]}`},
		"write only":       {`{"properties":{"k":{"writeOnly":true}}}`, `{"k":{"deep":1},"l":2}`, `{"k":"[hidden]","l":2}`},
		"password":         {`{"properties":{"k":{"format":"password"}}}`, `{"k":"s"}`, `{"k":"[hidden]"}`},
		"x-secret":         {`{"properties":{"k":{"x-secret":true}}}`, `{"k":12345678901234567890}`, `{"k":"[hidden]"}`},
		"not marked":       {`{"properties":{"k":{"writeOnly":false,"x-secret":"no"}}}`, `{"k":1}`, `{"k":1}`},
		"spelled":          {`{"properties":{"key":{"writeOnly":true}}}`, `{"\u006bey":"s"}`, `{"\u006bey":"[hidden]"}`},
		"in a list":        {`{"properties":{"l":{"items":{"properties":{"k":{"x-secret":true}}}}}}`, `{"l":[{"k":1},{"k":2,"v":3}]}`, `{"l":[{"k":"[hidden]"},{"k":"[hidden]","v":3}]}`},
		"at a place":       {`{"prefixItems":[{},{"x-secret":true}]}`, `["a","b","c"]`, `["a","[hidden]","c"]`},
		"by reference":     {`{"$defs":{"s":{"format":"password"}},"properties":{"k":{"$ref":"#/$defs/s"}}}`, `{"k":1}`, `{"k":"[hidden]"}`},
		"by a lost one":    {`{"properties":{"k":{"$ref":"https://elsewhere/s"},"l":{"$ref":"#/$defs/none"}}}`, `{"k":1,"l":2,"m":3}`, `{"k":"[hidden]","l":"[hidden]","m":3}`},
		"recursive":        {`{"$defs":{"n":{"properties":{"k":{"x-secret":true},"n":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`, `{"n":{"n":{"k":1}},"k":2}`, `{"n":{"n":{"k":"[hidden]"}},"k":"[hidden]"}`},
		"endless":          {`{"properties":{"k":{"$ref":"#/properties/k"}}}`, `{"k":1}`, `{"k":"[hidden]"}`},
		"in one of":        {`{"oneOf":[{"properties":{"k":{}}},{"properties":{"k":{"x-secret":true}}}]}`, `{"k":1}`, `{"k":"[hidden]"}`},
		"if then":          {`{"if":{},"then":{"properties":{"k":{"x-secret":true}}}}`, `{"k":1}`, `{"k":"[hidden]"}`},
		"by pattern":       {`{"patternProperties":{"^p":{"x-secret":true},"(?<x":{"x-secret":true}}}`, `{"p1":1,"q":2}`, `{"p1":"[hidden]","q":"[hidden]"}`},
		"all others":       {`{"properties":{"a":{}},"additionalProperties":{"x-secret":true}}`, `{"a":1,"b":2}`, `{"a":1,"b":"[hidden]"}`},
		"the whole":        {`{"x-secret":true}`, `{"a":1}`, `"[hidden]"`},
		"twice the key":    {`{"properties":{"k":{"x-secret":true}}}`, `{"k":1,"k":2}`, `{"k":"[hidden]","k":"[hidden]"}`},
		"one for each":     {`{"items":[{"x-secret":true},{}]}`, `[1,2]`, `["[hidden]",2]`},
		"in a not applied": {`{"allOf":[{"allOf":[{"properties":{"k":{"writeOnly":true}}}]}]}`, `{"k":1}`, `{"k":"[hidden]"}`},
	} {
		m, ok := marksOf([]byte(`{"name":"t","inputSchema":` + c.schema + `}`))
		got, err := m.hide([]byte(c.args))
		if !ok || err != nil || string(got) != c.want {
			t.Errorf("%s: %s, want %s (%v, %v)", what, got, c.want, ok, err)
		}
	}
	if s := shownArguments([]byte(`{"k":"s3cret"}`), []byte(`{"inputSchema":`)); strings.Contains(s, "s3cret") {
		t.Error("what nobody can judge is shown")
	}
}

func FuzzSecretValuesAreHidden(f *testing.F) {
	f.Add(`{"a":[{"key":"x"}],"key":{"y":1}}`)
	f.Add(`[[],{},"",{"k\u0065y":null}]`)
	f.Fuzz(func(t *testing.T, args string) {
		if !json.Valid([]byte(args)) {
			return
		}
		const schema = `{"inputSchema":{"$defs":{"any":{"properties":{"key":{"x-secret":true}},"additionalProperties":{"$ref":"#/$defs/any"},"items":{"$ref":"#/$defs/any"}}},"$ref":"#/$defs/any"}}`
		m, ok := marksOf([]byte(schema))
		shown, err := m.hide([]byte(args))
		if !ok || err != nil {
			return // it is not displayed
		}
		var v any
		if err := json.Unmarshal(shown, &v); err != nil {
			t.Fatalf("%s is no JSON: %v", shown, err)
		}
		var look func(v any)
		look = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				for k, in := range v {
					if k == "key" && in != "[hidden]" {
						t.Errorf("%s shows %v", args, in)
					}
					look(in)
				}
			case []any:
				for _, in := range v {
					look(in)
				}
			}
		}
		look(v)
	})
}

func FuzzButtonReferenceRoundTripsOrIsRefused(f *testing.F) {
	f.Add("appr_06gzwg9m6xv52e7cadjz96gfp8.0123456789abcdef01234567")
	f.Add("appr_.")
	f.Fuzz(func(t *testing.T, text string) {
		if r, ok := parseReference(text); ok && (r.String() != text || strings.ContainsAny(string(r.id), ".*> \n") || len(r.short) != shortDigest) {
			t.Errorf("%q names %+v", text, r)
		}
	})
}

func FuzzDeceptiveCharactersAreNotShown(f *testing.F) {
	f.Add("a\u202eb\nc\x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range clean(text) {
			if r < ' ' || r == 0x7f || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Errorf("%q shows %U", text, r)
			}
		}
	})
}

// example returns an approval at a fixed time.
func example(state ledger.State) *asked {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	a := &ledger.Approval{
		ID: "appr_06gzwg9m6xv52e7cadjz96gfp8", CallID: "call_06gzwg9m6xv52e7cadjz96gfp8", State: state, Reasons: []string{"it changes production"}, Created: at, Expires: at.Add(10 * time.Minute),
		Binding: ledger.Binding{Requester: ledger.Requester{Name: "billing-agent", Owner: "finance"}, Server: "prod", Tool: "deploy", Level: 2, ArgumentsDigest: "sha256:" + strings.Repeat("ab", 32)},
	}
	if state != ledger.Pending {
		a.Decisions = []ledger.Decision{{By: "oidc:ada@example.com", Kind: ledger.Approve, Channel: "web", At: at.Add(time.Minute), Reason: "looks right"}}
	}
	return &asked{Approval: a, rule: &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1, SlackLevel: 2}, args: "{\n  \"target\": \"x\"\n}", page: "https://approve.example.com/a/" + string(a.ID), decidable: true}
}

func TestCardsMatchGoldenFiles(t *testing.T) {
	for _, state := range []ledger.State{ledger.Pending, ledger.Approved} {
		c := example(state).card([]string{"Not needed"})
		body, err := json.MarshalIndent(map[string]any{"text": c.text, "blocks": c.blocks}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/card_"+string(state)+".json", append(body, '\n'))
	}
}

func TestEscapedLettersAreReadable(t *testing.T) {
	if got := shownArguments([]byte(`{"to":"gr\u00fc\u00dfe \u202e \u0430"}`), nil); got != "{\n  \"to\": \"grüße \\u202e \\u0430\"\n}" {
		t.Errorf("shown as %s", got)
	}
}

// Slack sends codes that its documentation does not list. Only those that reject the card itself drop it.
func TestOnlyCardsThatSlackRejectsAreDropped(t *testing.T) {
	for code, drops := range map[string]bool{"a_code_of_next_year": false, "posting_to_general_channel_denied": false, "invalid_auth": false, "msg_too_long": true, "message_not_found": true} {
		err := retry(api.SlackErrorResponse{Err: code})
		if _, never := errors.AsType[*notify.Never](err); never != drops {
			t.Errorf("%s: %#v", code, err)
		}
	}
	wait, ok := errors.AsType[*notify.Wait](retry(api.SlackErrorResponse{Err: "a_code_of_next_year"}))
	if !ok || !wait.Alone || wait.For != brokenFor {
		t.Errorf("an unknown code does not delay only its own card: %+v", wait)
	}
}

func TestManifestMatchesGoldenFiles(t *testing.T) {
	for file, c := range map[string]struct {
		public string
		json   bool
	}{"socket.yaml": {"", false}, "endpoint.yaml": {"https://approve.example.com/", false}, "endpoint.json": {"https://approve.example.com", true}} {
		body, err := Manifest(c.public, c.json)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/manifest_"+file, body)
	}
	for _, bad := range []string{"http://approve.example.com", "approve.example.com", "https://x/y", "https://x\"", "https://u@x"} {
		if _, err := Manifest(bad, false); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestInvalidConfigurationIsRefused(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	good := settings.SlackDefaults()
	good.BotToken, good.AppToken, good.TeamID, good.AppID, good.DefaultChannel = "xoxb-1", "xapp-1", "T1", "A1", "C1"
	if f := good.Validate(); len(f) > 0 {
		t.Fatal(f)
	}
	if f := settings.SlackDefaults().Validate(); len(f) > 0 {
		t.Errorf("without Slack: %v", f)
	}
	for key, change := range map[string]func(*settings.Slack){
		"bot_token":       func(c *settings.Slack) { c.BotToken = "xapp-1" },
		"bot_token_file":  func(c *settings.Slack) { c.BotToken, c.BotTokenFile = "", nowhere },
		"app_token":       func(c *settings.Slack) { c.AppToken = "" },
		"app_token_file":  func(c *settings.Slack) { c.AppTokenFile = "/also" },
		"team_id":         func(c *settings.Slack) { c.TeamID = "acme" },
		"app_id":          func(c *settings.Slack) { c.AppID = "" },
		"default_channel": func(c *settings.Slack) { c.DefaultChannel = "#ops" },
		"channels":        func(c *settings.Slack) { c.DefaultChannel = "" },
		"channels.ops":    func(c *settings.Slack) { c.Channels = map[string]string{"ops": "#ops"} },
		"max_level":       func(c *settings.Slack) { c.MaxLevel = 4 },
		"sign_in_for":     func(c *settings.Slack) { c.SignInFor = 0 },
		"deny_reasons":    func(c *settings.Slack) { c.DenyReasons = []string{strings.Repeat("x", 76)} },
		"api_url":         func(c *settings.Slack) { c.APIURL = "http://slack.example/api/" },
	} {
		c := good
		change(&c)
		if f := c.Validate(); len(f) != 1 || f[0].Path != key {
			t.Errorf("%s: %v", key, f)
		}
	}
	alone := settings.SlackDefaults()
	alone.TeamID = "T1"
	if f := alone.Validate(); len(f) != 1 || f[0].Path != "bot_token" {
		t.Error(f)
	}
}
