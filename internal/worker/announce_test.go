package worker

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestFailedAnnouncementsAreLoggedOnce(t *testing.T) {
	var lines bytes.Buffer
	srv := bustest.Start(t)
	conn := srv.Connect(t, "w")
	w, err := Start(Options{
		Name: "w", Version: "test", Conn: conn, Metrics: telemetry.NewMetrics(), Log: slog.New(slog.NewTextHandler(&lines, nil)), NoProcesses: true,
		Labels: map[string]string{"large": strings.Repeat("x", conn.MaxPayload())},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.announcer.announce()
	}
	if err := w.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	const failing, again = "this worker cannot announce itself", "announces itself again"
	if said := lines.String(); strings.Count(said, failing) != 1 || !strings.Contains(said, "raise it, or split the servers") {
		t.Errorf("it said %.2000s", said)
	}

	lines.Reset()
	w.announcer.failing = false
	for range 2 {
		for range 2 {
			w.announcer.logChange(errors.New("no"))
		}
		for range 2 {
			w.announcer.logChange(nil)
		}
	}
	if said := lines.String(); strings.Count(said, failing) != 2 || strings.Count(said, again) != 2 {
		t.Errorf("it said of two changes to each state %s", said)
	}
	conn.Close()
	lines.Reset()
	w.announcer.logChange(errors.New("no"))
	if said := lines.String(); said != "" {
		t.Errorf("of a connection that is down it said %s", said)
	}
}
