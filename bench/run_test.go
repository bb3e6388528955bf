package bench

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTargetsRotateTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		var targets []Target
		for _, name := range []string{"a", "b", "c"} {
			targets = append(targets, &scripted{name: name, call: taking(time.Millisecond), log: &log})
		}
		var told []int
		report, err := Run(t.Context(), Plan{
			Targets: targets, Concurrency: []int{1, 2}, Sizes: []int{200}, Rounds: 2, Duration: 100 * time.Millisecond,
			Progress: func(p Progress) { told = append(told, p.Done) },
		})
		if err != nil {
			t.Fatal(err)
		}
		// The first warm-up, then cell by cell.
		if got := strings.Join(log, ""); got != "abc"+"abc"+"bca"+"cab"+"abc" {
			t.Errorf("order %s", got)
		}
		if len(told) != 12 || told[11] != 12 {
			t.Errorf("progress %v", told)
		}
		var cells []string
		for _, c := range report.Cells {
			cells = append(cells, c.Target+string(rune('0'+c.Concurrency)))
			if len(c.Rounds) != 2 {
				t.Errorf("%s has %d rounds", c.Target, len(c.Rounds))
			}
		}
		if got := strings.Join(cells, " "); got != "a1 b1 c1 a2 b2 c2" {
			t.Errorf("cells %s", got)
		}
	})
}

func TestRatiosAreToTheDirectClientOfTheSameCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, err := Run(t.Context(), Plan{
			Targets: []Target{
				&scripted{name: "fabric", call: taking(4 * time.Millisecond)},
				&scripted{name: DirectSDK, call: taking(2 * time.Millisecond)},
			},
			Concurrency: []int{1, 8}, Sizes: []int{200}, Rounds: 3, Duration: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range report.Cells {
			want := 1.0
			if c.Target == "fabric" {
				want = 0.5
			}
			near(t, c.Target+"'s ratio", c.Ratio, want, 0.01)
		}
	})
}

func TestPlansThatMeasureNothingAreRefused(t *testing.T) {
	good := Plan{Targets: []Target{&scripted{name: "a"}}, Concurrency: []int{1}, Sizes: []int{200}, Rounds: 1, Duration: time.Second}
	for name, spoil := range map[string]func(*Plan){
		"no target":        func(p *Plan) { p.Targets = nil },
		"no concurrency":   func(p *Plan) { p.Concurrency = nil },
		"concurrency zero": func(p *Plan) { p.Concurrency = []int{1, 0} },
		"no size":          func(p *Plan) { p.Sizes = nil },
		"no round":         func(p *Plan) { p.Rounds = 0 },
		"no time":          func(p *Plan) { p.Duration = 0 },
		"one name twice":   func(p *Plan) { p.Targets = append(p.Targets, p.Targets[0]) },
	} {
		p := good
		spoil(&p)
		if _, err := Run(t.Context(), p); err == nil {
			t.Errorf("%s: was run", name)
		}
	}
}

func TestMediansUseSuccessfulRoundsOnly(t *testing.T) {
	got := medianOf([]Sample{
		{Calls: 10, Rate: 10, P50: 5, CPU: map[string]float64{"worker": 8}, Failures: map[string]int64{"x": 1}, Errors: 1},
		{Calls: 0, Rate: 0, Errors: 4, Failures: map[string]int64{"x": 4}},
		{Calls: 30, Rate: 30, P50: 7, CPU: map[string]float64{"worker": 10, "nats": 4}},
	})
	want := Sample{Calls: 40, Errors: 5, Failures: map[string]int64{"x": 5}, Rate: 10, P50: 6, CPU: map[string]float64{"worker": 9, "nats": 2}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 2}, 3}} {
		if got := median(c.values); got != c.want {
			t.Errorf("the median of %v is %g", c.values, got)
		}
	}
}

func TestEveryCallHasAUniqueMessage(t *testing.T) {
	seen := make(map[string]bool)
	for lane := range 3 {
		m := newMessage(make([]byte, MinSize), lane)
		for range 100 {
			m.next()
			if seen[string(m.text)] || len(m.text) != MinSize {
				t.Fatalf("lane %d: %q", lane, m.text)
			}
			seen[string(m.text)] = true
		}
	}
	for _, size := range []int{MinSize - 1, MaxSize + 1} {
		if checkSize(size) == nil {
			t.Errorf("size %d was taken", size)
		}
	}
	if err := (&message{text: []byte("0123456789abcdef-0123456789abcdef")}).in([]byte("0123456789abcdef")); !errors.Is(err, errNotWhole) {
		t.Errorf("a head alone gave %v", err)
	}
}
