package console

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
)

const (
	// window is the time range of rates and latencies.
	window = time.Minute
	// between is the minimum time between two samples.
	between = time.Second
)

// counts holds the counts of calls that ended.
type counts struct {
	ended, failed, toolErrors float64
	buckets                   map[float64]float64 // cumulative, by the upper bound in seconds
}

// doorLoad holds the call counts of one front door since it started.
type doorLoad struct {
	id string
	counts
	inFlight, waiting int64
}

// measured holds the figures of one moment.
type measured struct {
	at     time.Time
	fabric callyard.Fabric // figures that all front doors share
	doors  []doorLoad
	silent int // front doors of older versions, which do not report their calls
}

// flying returns the total of the calls in flight, and of those that wait for a slot.
func (m *measured) flying() (inFlight, waiting int64) {
	for i := range m.doors {
		inFlight += m.doors[i].inFlight
		waiting += m.doors[i].waiting
	}
	return inFlight, waiting
}

// meter adds up the counts of all front doors while a page is open. It is safe for concurrent use.
type meter struct {
	mu      sync.Mutex
	last    map[string]seenLoad
	sum     counts
	samples []sampleTotal // of the last minute
}

type seenLoad struct {
	counts
	at time.Time
}

// sampleTotal is the total at a time.
type sampleTotal struct {
	at time.Time
	counts
}

// add adds a sample. A front door that is new to the meter contributes from its second sample on,
// because the end times of its earlier calls are not known. Counts lower than before are a stale
// view from another front door. If no front door was seen within the window, or the only one
// restarted, the meter starts again.
func (m *meter) add(s *measured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.samples); n > 0 {
		if age := s.at.Sub(m.samples[n-1].at); age <= window && age < between {
			return
		}
	}
	maps.DeleteFunc(m.last, func(_ string, l seenLoad) bool { return s.at.Sub(l.at) > window })
	known := 0
	for i := range s.doors {
		d := &s.doors[i]
		before, ok := m.last[d.id]
		switch {
		case !ok:
		case d.ended >= before.ended:
			known++
			m.sum.add(&d.counts, &before.counts)
		default:
			known++
			m.last[d.id] = seenLoad{before.counts, s.at}
		}
	}
	if known == 0 {
		m.last, m.samples, m.sum = make(map[string]seenLoad), nil, counts{buckets: make(map[float64]float64)}
	}
	for i := range s.doors {
		if d := &s.doors[i]; d.ended >= m.last[d.id].ended {
			m.last[d.id] = seenLoad{d.counts, s.at}
		}
	}
	sum := m.sum
	sum.buckets = maps.Clone(sum.buckets)
	m.samples = append(m.samples, sampleTotal{s.at, sum})
	for len(m.samples) > 2 && s.at.Sub(m.samples[1].at) >= window {
		m.samples = m.samples[1:]
	}
}

// add adds the counts between two samples of a front door.
func (c *counts) add(to, from *counts) {
	c.ended += to.ended - from.ended
	c.failed += to.failed - from.failed
	c.toolErrors += to.toolErrors - from.toolErrors
	for le, n := range to.buckets {
		c.buckets[le] += n - from.buckets[le]
	}
}

// rates holds the figures of the calls that ended between two samples.
type rates struct {
	Over                     time.Duration // 0 means that there is only one sample, and nothing is known yet
	Calls, Failed, ToolError float64       // per second
	P50, P99                 float64       // seconds; negative if no call ended
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

// quantile estimates a quantile of the observations added to a histogram, by interpolation within
// the bucket. It returns -1 if there were none.
func quantile(from, to map[float64]float64, q float64) float64 {
	bounds := slices.Sorted(maps.Keys(to))
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

// measure takes a sample with the user's key.
func (c *Console) measure(ctx context.Context, v Visit) (m measured, err error) {
	list, err := c.frontDoors(ctx, v)
	if err != nil {
		return m, err
	}
	m = measured{at: c.o.Now(), fabric: list.Fabric}
	for i := range list.FrontDoors {
		if l := list.FrontDoors[i].Load; l != nil {
			m.doors = append(m.doors, loadOf(list.FrontDoors[i].ID, l))
		} else {
			m.silent++
		}
	}
	c.meter.add(&m)
	return m, nil
}

// frontDoors returns the live front doors, starting with the one that answers, and the figures that
// all of them share.
func (c *Console) frontDoors(ctx context.Context, v Visit) (callyard.FrontDoorList, error) {
	return current[callyard.FrontDoorList](ctx, c, v, api.ListFrontDoors)
}

// loadOf returns the call counts that a front door reports.
func loadOf(id string, l *callyard.FrontDoorLoad) doorLoad {
	d := doorLoad{
		id: id, inFlight: l.InFlight, waiting: l.Waiting,
		counts: counts{ended: float64(l.Ended), failed: float64(l.Failed), toolErrors: float64(l.ToolErrors), buckets: make(map[float64]float64)},
	}
	upTo := 0.0
	for _, t := range l.Times {
		upTo += float64(t.Calls)
		le := math.Inf(1)
		if t.AtMost != nil {
			le = *t.AtMost
		}
		d.buckets[le] = upTo
	}
	return d
}
