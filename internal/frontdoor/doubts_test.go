package frontdoor_test

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestServerThatIsStillStartingIsNoMistakeInThePolicy(t *testing.T) {
	srv := bustest.Start(t)
	startCountingWorker(t, srv)
	d := openDoor(t, srv, frontdoor.Options{Policy: policyOf(t, `rules:
  - {name: starting, match: {server: late, tool: any}, level: 2}
  - {name: absent, match: {server: nowhere}, level: 2}
  - {name: mistyped, match: {server: s, tool: raed}, level: 2}
`)})
	changes, done := d.in.Catalog().Changes()
	defer done()
	late := &schema.Worker{ID: "late", Servers: []schema.Server{{ID: "late", State: schema.StateStarting, Slots: 1}}}
	if err := srv.Connect(t, "late").Announce(late); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := d.in.Catalog().Server("late"); err == nil {
			break
		}
		<-changes
	}
	got := strings.Join(d.in.Doubts(), "\n")
	if strings.Contains(got, "starting") || !strings.Contains(got, `"nowhere" matches no server`) || !strings.Contains(got, `"raed" matches no tool`) {
		t.Error(got)
	}
}
