package worker_test

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/schema"
)

func TestApprovedCallRunsOnlyWithApprovedArguments(t *testing.T) {
	f := startFleet(t, people, entry("pay", mcptest.Echo))
	good := f.approved(f.effect("pay", "one"))
	for name, extra := range map[string]string{
		"answers to a question": `{"inputResponses":{"amount":{"action":"accept","content":{"amount":1000000}}}}`,
		"a state":               `{"requestState":"s-1"}`,
		"meta":                  `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`,
		"nothing in an object":  `{}`,
	} {
		changed := *good
		changed.Extra = []byte(extra)
		refusal := f.send(&changed)
		if refusal == nil || refusal.Kind != schema.KindForbidden || refusal.CallID != good.ID || !strings.Contains(refusal.Detail, "exactly the approved arguments") {
			t.Errorf("%s: %v", name, refusal)
		}
	}
	if n := f.ran(); n != 0 {
		t.Fatalf("%d effects", n)
	}
	// The refused call never started, so the approval is still valid, once.
	if refusal := f.send(good); refusal != nil || f.ran() != 1 {
		t.Errorf("as it was approved: %v, %d effects", refusal, f.ran())
	}
}

func TestAConfirmedCallCarriesOnlyItsArguments(t *testing.T) {
	f := startFleet(t, "", held(entry("pay", mcptest.Echo)))
	frame := f.effect("pay", "one")
	frame.Warrant = f.sign(f.door, claimsOf(frame, warrant.Caller))
	changed := *frame
	changed.Extra = []byte(`{"requestState":"s-1"}`)
	if refusal := f.send(&changed); refusal == nil || refusal.Kind != schema.KindForbidden || f.ran() != 0 {
		t.Errorf("%v, %d effects", refusal, f.ran())
	}
}

func TestMetadataOfAPlainCallIsBounded(t *testing.T) {
	f := startFleet(t, "", entry("calm", mcptest.Echo))
	frame := f.effect("calm", "one")
	frame.Approval = ""
	frame.Extra = []byte(`{"requestState":"` + strings.Repeat("x", 512<<10) + `"}`)
	if refusal := f.send(frame); refusal == nil || refusal.Kind != schema.KindTooLarge || f.ran() != 0 {
		t.Errorf("%v, %d effects", refusal, f.ran())
	}
	frame.Extra = []byte(`{"requestState":"` + strings.Repeat("x", 511<<10) + `"}`)
	if refusal := f.send(frame); refusal != nil || f.ran() != 1 {
		t.Errorf("%v, %d effects", refusal, f.ran())
	}
}
