package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
)

func TestACallIsTestedAgainstThePolicy(t *testing.T) {
	policy := policyOf(t, "rules:\n  - {name: ask, when: 'has(args.n) && args.n > 5', approval: {groups: [ops, fin], needed: 2, expires: 1h}}\n  - {name: rest, level: 1}\n")
	f := openFabricWith(t, frontdoortest.Options{Policy: policy}, nil)
	test := func(body string) (d calls.PolicyDecision) {
		t.Helper()
		a := f.do("POST", "/policy/test", body, "Content-Type", "application/json")
		if a.status != http.StatusOK || json.Unmarshal(a.body, &d) != nil || strings.Contains(string(a.body), "null") {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return d
	}
	if d := test(`{"server":"demo","tool":"echo"}`); d.Decision != "allowed" || d.Rule != "rest" || d.Level != 1 || d.Approval != nil || d.Arguments != calls.ArgumentsValid || d.Version != policy.Version() {
		t.Errorf("without arguments: %+v", d)
	}
	d := test(`{"server":"demo","tool":"echo","arguments":{"n":9007199254740993}}`)
	if d.Decision != "held" || d.Rule != "ask" || d.Level != 2 || d.Approval == nil || strings.Join(d.Approval.Groups, " ") != "ops fin" || d.Approval.Needed != 2 || d.Approval.ExpiresMS != 3600_000 || len(d.Reasons) == 0 {
		t.Errorf("much: %+v %+v", d, d.Approval)
	}
	d = test(`{"server":"demo","tool":"echo","arguments":{},"policy":"rules: [{name: ada, when: 'principal.name == \"ada\" && \"dev\" in principal.groups', deny: no}, {name: kept, durable: true, level: 1}]","principal":{"name":"ada","groups":["dev"]}}`)
	if d.Decision != "refused" || d.Rule != "ada" || d.Error == nil || d.Error.Kind != "forbidden" {
		t.Errorf("a draft for another principal: %+v", d)
	}
	if d = test(`{"server":"demo","tool":"echo","policy":"rules: [{name: kept, durable: true, level: 1}]"}`); !d.Durable || d.Decision != "allowed" {
		t.Errorf("a durable call: %+v", d)
	}
	for body, want := range map[string]struct {
		status  int
		pointer string
	}{
		`{"server":"demo","tool":"none"}`:                                       {http.StatusNotFound, ""},
		`{"server":"demo","tool":"echo","arguments":[1]}`:                       {http.StatusBadRequest, "/arguments"},
		`{"server":"demo"}`:                                                     {http.StatusBadRequest, "/tool"},
		`{"server":"demo","tool":"echo","x":1}`:                                 {http.StatusBadRequest, "/x"},
		`{"server":"demo","tool":"echo","principal":{"groups":["a"]}}`:          {http.StatusBadRequest, "/principal/name"},
		`{"server":"demo","tool":"echo","principal":{"name":""}}`:               {http.StatusBadRequest, "/principal"},
		`{"server":"demo","tool":"echo","principal":"ada"}`:                     {http.StatusBadRequest, "/principal"},
		`{"server":"demo","tool":"echo","principal":{"name":"a","tenant":"/"}}`: {http.StatusBadRequest, "/principal"},
		`{"server":"demo","tool":"echo","policy":"rules: [{name: a}]"}`:         {http.StatusUnprocessableEntity, "/policy"},
	} {
		p := problemOf(t, f.do("POST", "/policy/test", body, "Content-Type", "application/json"))
		if p.Status != want.status || want.pointer != "" && (len(p.Errors) == 0 || p.Errors[0].Pointer == nil || *p.Errors[0].Pointer != want.pointer) {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if a := f.do("GET", "/calls", ""); !strings.Contains(string(a.body), `"calls":[]`) {
		t.Errorf("tests are recorded: %s", a.body)
	}
	if strings.Contains(f.Logged.String(), "9007199254740993") {
		t.Error("arguments are in the log")
	}
}
