package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is the outcome of a run, and the JSON that is written.
type Report struct {
	Date            time.Time `json:"date"`
	Machine         Machine   `json:"machine"`
	WarmupSeconds   float64   `json:"warmup_seconds"`
	DurationSeconds float64   `json:"duration_seconds"`
	RoundCount      int       `json:"rounds"`
	Targets         []string  `json:"targets"`
	Sizes           []int     `json:"sizes"`
	Concurrency     []int     `json:"concurrency"`
	// Absent maps requested targets that are not in the report to the reason.
	Absent map[string]string `json:"absent,omitempty"`
	// Cells are ordered by size, concurrency and target.
	Cells []Cell `json:"cells"`
}

// Cell is the result of one target at one size and concurrency.
type Cell struct {
	Target      string `json:"target"`
	Size        int    `json:"size"`
	Concurrency int    `json:"concurrency"`
	// Median holds the sums of the counts and the medians of everything else.
	Median Sample `json:"median"`
	// Ratio is the median rate divided by that of the direct go-sdk client in the same
	// cell. 0 means that the client was not measured.
	Ratio  float64  `json:"ratio_to_direct_sdk,omitempty"`
	Rounds []Sample `json:"samples"`
}

// Sample is one measurement.
type Sample struct {
	Seconds float64 `json:"seconds"` // the duration of the measurement
	Calls   int64   `json:"calls"`   // with a complete answer
	Errors  int64   `json:"errors"`
	// Failures counts the errors by their text.
	Failures map[string]int64 `json:"failures,omitempty"`
	Rate     float64          `json:"calls_per_second"`
	// Latencies in microseconds.
	P50 float64 `json:"p50_us"`
	P90 float64 `json:"p90_us"`
	P99 float64 `json:"p99_us"`
	Max float64 `json:"max_us"`
	// CPU is the CPU time per complete call in microseconds, by process.
	CPU map[string]float64 `json:"cpu_us_per_call,omitempty"`
}

// newSample combines the records of the lanes.
func newSample(lanes []*laneRecord, window time.Duration, used map[string]time.Duration) Sample {
	var (
		s   = Sample{Seconds: window.Seconds()}
		all = hdrhistogram.New(1, int64(maxLatency/latencyUnit), 3)
	)
	for _, lane := range lanes {
		all.Merge(lane.latencies)
		s.Errors += lane.errors
		for text, n := range lane.failures {
			if s.Failures == nil {
				s.Failures = make(map[string]int64)
			}
			s.Failures[text] += n
		}
	}
	s.Calls = all.TotalCount()
	if s.Calls == 0 {
		return s
	}
	s.Rate = float64(s.Calls) / s.Seconds
	perUnit := float64(latencyUnit) / float64(time.Microsecond)
	s.P50 = float64(all.ValueAtPercentile(50)) * perUnit
	s.P90 = float64(all.ValueAtPercentile(90)) * perUnit
	s.P99 = float64(all.ValueAtPercentile(99)) * perUnit
	s.Max = float64(all.Max()) * perUnit
	s.CPU = make(map[string]float64, len(used))
	for name, time := range used {
		s.CPU[name] = float64(time.Nanoseconds()) / 1e3 / float64(s.Calls)
	}
	return s
}

// sum computes the medians and ratios.
func (r *Report) sum() {
	type place struct{ size, concurrency int }
	yardsticks := make(map[place]float64)
	for i := range r.Cells {
		c := &r.Cells[i]
		c.Median = medianOf(c.Rounds)
		if c.Target == DirectSDK {
			yardsticks[place{c.Size, c.Concurrency}] = c.Median.Rate
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if rate := yardsticks[place{c.Size, c.Concurrency}]; rate > 0 {
			c.Ratio = c.Median.Rate / rate
		}
	}
}

func medianOf(samples []Sample) Sample {
	var m Sample
	names := make(map[string]bool)
	for _, s := range samples {
		m.Calls += s.Calls
		m.Errors += s.Errors
		for text, n := range s.Failures {
			if m.Failures == nil {
				m.Failures = make(map[string]int64)
			}
			m.Failures[text] += n
		}
		for name := range s.CPU {
			names[name] = true
		}
	}
	all := func(pick func(Sample) float64) float64 {
		var values []float64
		for _, s := range samples {
			values = append(values, pick(s))
		}
		return median(values)
	}
	// A measurement without answers has a rate, but no latency.
	of := func(pick func(Sample) float64) float64 {
		var values []float64
		for _, s := range samples {
			if s.Calls > 0 {
				values = append(values, pick(s))
			}
		}
		return median(values)
	}
	m.Seconds = all(func(s Sample) float64 { return s.Seconds })
	m.Rate = all(func(s Sample) float64 { return s.Rate })
	m.P50 = of(func(s Sample) float64 { return s.P50 })
	m.P90 = of(func(s Sample) float64 { return s.P90 })
	m.P99 = of(func(s Sample) float64 { return s.P99 })
	m.Max = of(func(s Sample) float64 { return s.Max })
	for name := range names {
		if m.CPU == nil {
			m.CPU = make(map[string]float64)
		}
		m.CPU[name] = of(func(s Sample) float64 { return s.CPU[name] })
	}
	return m
}

// median returns the middle value, or the mean of the two middle values, or 0 if values is
// empty. It sorts values.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// WriteJSON writes the report. Times are rounded to their significant digits.
func (r *Report) WriteJSON(w io.Writer) error {
	rounded := *r
	rounded.Cells = slices.Clone(r.Cells)
	for i := range rounded.Cells {
		c := &rounded.Cells[i]
		c.Median = c.Median.rounded()
		c.Ratio = round(c.Ratio, 1000)
		c.Rounds = slices.Clone(c.Rounds)
		for j := range c.Rounds {
			c.Rounds[j] = c.Rounds[j].rounded()
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(rounded); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func (s Sample) rounded() Sample {
	s.Seconds, s.Rate = round(s.Seconds, 1000), round(s.Rate, 10)
	s.P50, s.P90, s.P99, s.Max = round(s.P50, 10), round(s.P90, 10), round(s.P99, 10), round(s.Max, 10)
	s.CPU = maps.Clone(s.CPU)
	for name, used := range s.CPU {
		s.CPU[name] = round(used, 100)
	}
	return s
}

func round(x, steps float64) float64 { return math.Round(x*steps) / steps }
