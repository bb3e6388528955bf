package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// figures maps names of figures, chosen by the test, to values.
type figures map[string]float64

// figuresOfMetrics reads GET /metrics.
func (d *door) figuresOfMetrics() (figures, error) {
	a, err := d.try("GET", "/metrics", "", "Accept: text/plain")
	if err != nil || a.status != http.StatusOK {
		return nil, fmt.Errorf("%d %w", a.status, err)
	}
	of := figures{}
	for line := range strings.Lines(string(a.body)) {
		found := regexp.MustCompile(`^callyard_(calls_total|usage_calls_total|approvals_waiting|calls_in_flight|batches_open)(\{.*\})? (\S+)$`).FindStringSubmatch(strings.TrimSpace(line))
		if found == nil {
			continue
		}
		n, err := strconv.ParseFloat(found[3], 64)
		if err != nil {
			return nil, err
		}
		name := found[1]
		if outcome := regexp.MustCompile(`outcome="([^"]*)"`).FindStringSubmatch(found[2]); outcome != nil {
			name += " " + outcome[1]
		}
		of[name] += n
		if found[1] == "calls_total" {
			of["ended"] += n
		}
	}
	return of, nil
}

// figureOf reads a figure of the overview.
func (c *crowded) figureOf(t testing.TB, label string) string {
	t.Helper()
	body := string(c.look(t, address{"overview", "/console"}).body)
	found := figureIn(body, label)
	if found == "" {
		t.Fatalf("the overview has no %q: %s", label, body)
	}
	return found
}

// TestFiguresOfPagesAPIAndMetricsAgree makes calls with known outcomes, and compares the
// figures of the log of calls, usage, the metrics and the overview.
func TestFiguresOfPagesAPIAndMetricsAgree(t *testing.T) {
	t.Parallel()
	c := fillConsole(t, amounts{servers: 2, tools: 20, calls: 400, approvals: 12})
	const key = "none" // there are no keys, so all calls have the same caller
	wantLog := usageCounts{"calls": 432, "succeeded": 416, "failed": 4, "unfinished": 12, "held": 12, "tool_errors": 4}
	wantMetrics := figures{
		"ended": 420, "calls_total ok": 412, "calls_total tool-error": 4, "calls_total invalid-arguments": 4, "calls_total outcome-unknown": 0, "usage_calls_total succeeded": 416, "usage_calls_total failed": 4,
		"approvals_waiting": 12, "calls_in_flight": 0, "batches_open": 0,
	}
	c.eventually(t, startWithin, "figures that agree", func() error {
		log, err := c.recorded(key)
		if err != nil {
			return err
		}
		usage, err := c.usageByKey(key)
		if err != nil || len(usage) != 1 {
			return fmt.Errorf("usage has %d rows: %w", len(usage), err)
		}
		for _, of := range usage {
			if !sameUsage(of, log) {
				return fmt.Errorf("usage has %v and the log %v", of, log)
			}
		}
		for _, name := range []string{"bytes_in", "bytes_out", "took_ms"} {
			delete(log, name)
		}
		metrics, err := c.figuresOfMetrics()
		if diff := cmp.Diff(wantLog, log) + cmp.Diff(wantMetrics, metrics); err != nil || diff != "" {
			return fmt.Errorf("(-want +got) %s %w", diff, err)
		}
		return nil
	})
	for label, want := range map[string]string{"In flight": "0", "Held for approval": "12", "Servers in trouble": "0", "Open batches": "0", "Workers": "1"} {
		if got := c.figureOf(t, label); got != want {
			t.Errorf("the overview says %q of %q, not %q", got, label, want)
		}
	}
	// Under load, no figure is less than the number of calls answered before it was read, or more
	// than the number sent by then.
	before, err := c.figuresOfMetrics()
	if err != nil {
		t.Fatal(err)
	}
	var sent, answered atomic.Int64
	l := startLoad(t, 4, func(_, _ int) error {
		sent.Add(1)
		a, err := c.tryCall(calculator, "evaluate", `{"expression":"2+2"}`)
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		answered.Add(1)
		return err
	})
	for range 5 {
		l.more(t, 50)
		least := answered.Load()
		log, logErr := c.recorded(key)
		metrics, err := c.figuresOfMetrics()
		most := sent.Load()
		if err != nil || logErr != nil {
			t.Fatal(err, logErr)
		}
		for name, got := range map[string]float64{"the log": log["calls"] - wantLog["calls"], "the metrics": metrics["ended"] - before["ended"]} {
			if got < float64(least) || got > float64(most) {
				t.Errorf("%s has %v calls: %d were answered before, and %d sent until then", name, got, least, most)
			}
		}
	}
	l.end()
	l.none(t, "the calls")
}
