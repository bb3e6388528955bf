package console

import (
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
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

// counts are the calls that ended.
type counts struct {
	ended, failed, toolErrors float64
	buckets                   map[float64]float64 // by the longest time in seconds: those that took no longer
}

// doorLoad is what one front door says of its calls since it started.
type doorLoad struct {
	id string
	counts
	inFlight, waiting int64
}

// measured are the figures of one moment.
type measured struct {
	at     time.Time
	fabric callyard.Fabric // what is not of one front door
	doors  []doorLoad
	silent int // the front doors of older versions, which do not tell of their calls
}

// flying sums the calls in flight, and those among them that wait for a slot.
func (m *measured) flying() (inFlight, waiting int64) {
	for i := range m.doors {
		inFlight += m.doors[i].inFlight
		waiting += m.doors[i].waiting
	}
	return inFlight, waiting
}

// meter adds up what all front doors count, while somebody looks. It is safe for concurrent use.
type meter struct {
	mu      sync.Mutex
	last    map[string]seenLoad
	sum     counts
	samples []sampled // of the last minute
}

type seenLoad struct {
	counts
	at time.Time
}

// sampled is the sum at a time.
type sampled struct {
	at time.Time
	counts
}

// add takes in a sample. A front door that was not seen before adds nothing until the next one:
// it is not known when its calls ended. Counts that are lower than before are those of a moment
// ago, seen by another front door. If none of the front doors was seen within the window,
// or the only one started again, nothing is known any more.
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
	m.samples = append(m.samples, sampled{s.at, sum})
	for len(m.samples) > 2 && s.at.Sub(m.samples[1].at) >= window {
		m.samples = m.samples[1:]
	}
}

// add adds what was counted between two looks at a front door.
func (c *counts) add(to, from *counts) {
	c.ended += to.ended - from.ended
	c.failed += to.failed - from.failed
	c.toolErrors += to.toolErrors - from.toolErrors
	for le, n := range to.buckets {
		c.buckets[le] += n - from.buckets[le]
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

// frontDoors returns the live front doors, the one that answers first, and the figures that all of
// them have alike.
func (c *Console) frontDoors(ctx context.Context, v Visit) (callyard.FrontDoorList, error) {
	return cached(c.cache, v, "front doors", func() (callyard.FrontDoorList, error) {
		return get[callyard.FrontDoorList](ctx, c, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
			return client.ListFrontDoors(ctx)
		})
	})
}

// loadOf reads what a front door says of its calls.
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
