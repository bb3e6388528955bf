package console

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
)

const (
	// window is the time over which rates and latencies are taken.
	window = time.Minute
	// between is the least time between two samples.
	between = time.Second
)

// counters is what the console reads of a front door's metrics.
type counters struct {
	at                                time.Time
	began                             float64 // when the front door started, in Unix seconds; 0 where it does not say
	ended, failed, toolErrors         float64 // calls
	buckets                           map[float64]float64
	inFlight, held, workers, batches  float64 // negative where the front door does not say
	oldestHeld, disagreements, waited float64
}

// readCounters reads the text format of Prometheus. Lines that it does not know are skipped.
func readCounters(text []byte) counters {
	c := counters{buckets: make(map[float64]float64), inFlight: -1, held: -1, workers: -1, batches: -1, oldestHeld: -1}
	for line := range bytes.Lines(text) {
		name, labels, value, ok := sample(string(bytes.TrimSpace(line)))
		if !ok {
			continue
		}
		switch strings.TrimPrefix(name, "callyard") {
		case "process_start_time_seconds":
			c.began = value
		case "_calls_total":
			c.ended += value
			switch outcome := labelOf(labels, "outcome"); outcome {
			case "ok":
			case "tool-error":
				c.toolErrors += value
			default:
				c.failed += value
			}
		case "_call_seconds_bucket":
			if le, err := strconv.ParseFloat(labelOf(labels, "le"), 64); err == nil && !math.IsNaN(le) {
				c.buckets[le] += value
			}
		case "_calls_in_flight":
			c.inFlight = value
		case "_approvals_waiting":
			c.held = value
		case "_approvals_oldest_seconds":
			c.oldestHeld = value
		case "_workers":
			c.workers = value
		case "_batches_open":
			c.batches = value
		case "_config_disagreements":
			c.disagreements = value
		case "_waiting_calls":
			c.waited += value
		}
	}
	return c
}

// sample splits a line into the name of the metric, its labels and its value.
func sample(line string) (name, labels string, value float64, ok bool) {
	if line == "" || line[0] == '#' {
		return "", "", 0, false
	}
	name, rest := line, ""
	if i := strings.IndexByte(line, '{'); i >= 0 {
		end := strings.LastIndexByte(line, '}')
		if end < i {
			return "", "", 0, false
		}
		name, labels, rest = line[:i], line[i+1:end], line[end+1:]
	} else if i := strings.IndexByte(line, ' '); i >= 0 {
		name, rest = line[:i], line[i:]
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return "", "", 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	return name, labels, value, err == nil && !math.IsNaN(value)
}

// labelOf returns the value of a label; empty where it is not there. The values that are
// asked for need no escapes.
func labelOf(labels, name string) string {
	for labels != "" {
		key, rest, ok := strings.Cut(labels, `="`)
		if !ok {
			return ""
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return ""
		}
		if strings.TrimLeft(key, ", ") == name {
			return rest[:end]
		}
		labels = rest[end+1:]
	}
	return ""
}

// meter keeps the samples of the last minute while somebody looks. It is safe for
// concurrent use.
type meter struct {
	now     func() time.Time
	mu      sync.Mutex
	samples []counters
}

// add keeps a sample. What was kept of another front door, or of the one before it started
// again, says nothing of this one; nor does what is older than the window.
func (m *meter) add(c counters) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.samples); n > 0 {
		last := m.samples[n-1]
		if c.ended < last.ended || c.began != last.began || c.at.Sub(last.at) > window {
			m.samples = nil
		} else if c.at.Sub(last.at) < between {
			return
		}
	}
	m.samples = append(m.samples, c)
	for len(m.samples) > 2 && c.at.Sub(m.samples[1].at) >= window {
		m.samples = m.samples[1:]
	}
}

// rates are figures of the calls that ended between two samples.
type rates struct {
	Over                     time.Duration // 0: there is one sample only, and nothing is known yet
	Calls, Failed, ToolError float64       // a second
	P50, P99                 float64       // seconds; negative where no call ended
}

func (m *meter) rates() rates {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.samples) < 2 {
		return rates{P50: -1, P99: -1}
	}
	from, to := m.samples[0], m.samples[len(m.samples)-1]
	r := rates{Over: to.at.Sub(from.at)}
	s := r.Over.Seconds()
	r.Calls, r.Failed, r.ToolError = (to.ended-from.ended)/s, (to.failed-from.failed)/s, (to.toolErrors-from.toolErrors)/s
	r.P50, r.P99 = quantile(from.buckets, to.buckets, 0.5), quantile(from.buckets, to.buckets, 0.99)
	return r
}

// quantile estimates a quantile of what was added to a histogram, by the position within its
// bucket; -1 where nothing was.
func quantile(from, to map[float64]float64, q float64) float64 {
	var bounds []float64
	for le := range to {
		bounds = append(bounds, le)
	}
	slices.Sort(bounds)
	if len(bounds) == 0 {
		return -1
	}
	last := bounds[len(bounds)-1]
	all := to[last] - from[last]
	if all <= 0 {
		return -1
	}
	want, below, low := q*all, 0.0, 0.0
	for _, le := range bounds {
		n := to[le] - from[le]
		if n >= want {
			if math.IsInf(le, 1) {
				return low
			}
			if n == below {
				return le
			}
			return low + (le-low)*(want-below)/(n-below)
		}
		below, low = n, le
	}
	return low
}

// measure takes a sample with the key of the person.
func (c *Console) measure(ctx context.Context, v Visit) (counters, error) {
	return cached(c.cache, v, "metrics", func() (counters, error) {
		a, err := c.ask(ctx, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
			return client.GetMetrics(ctx, plainText)
		})
		if err != nil {
			return counters{}, err
		}
		sample := readCounters(a.body)
		sample.at = c.o.Now()
		c.meter.add(sample)
		return sample, nil
	})
}

// plainText asks for the older format, which every version of a front door has.
func plainText(_ context.Context, r *http.Request) error {
	r.Header.Set("Accept", "text/plain")
	return nil
}
