package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
)

func TestConcurrentFabricsHaveSeparateApprovers(t *testing.T) {
	addresses := make(map[string]bool)
	for range 3 { // none of them serves yet
		cmd := &cobra.Command{}
		setup.AddFlags(cmd.Flags(), "approver-listen")
		cfg := &setup.Config{}
		cfg.Approver.Listen = settings.ApproverDefaults().Listen
		l := findApprover(cmd, cfg)
		if l == nil {
			t.Fatal("no address was found")
		}
		defer l.Close()
		if got := l.Addr().String(); got != cfg.Approver.Listen || addresses[got] {
			t.Errorf("the listener is at %s, the configuration says %s, taken before: %v", got, cfg.Approver.Listen, addresses)
		}
		addresses[cfg.Approver.Listen] = true
	}
	cmd := &cobra.Command{}
	setup.AddFlags(cmd.Flags(), "approver-listen")
	cfg := &setup.Config{}
	cfg.Approver.Listen = "127.0.0.1:1"
	if l := findApprover(cmd, cfg); l != nil || cfg.Approver.Listen != "127.0.0.1:1" {
		t.Errorf("an address that was named became %s", cfg.Approver.Listen)
	}
}
