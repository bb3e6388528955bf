package dispatch

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// machine simulates a machine that becomes slower the more batch calls run.
type machine struct {
	p        rateController
	capacity float64 // maximum of batch calls per second
	slowness float64 // factor for all durations, independent of the load
	// hitches means that batch calls delay few single calls, but for long: at 1,000 per second,
	// one of ten.
	hitches bool

	mu    sync.Mutex
	dice  *rand.Rand
	calls []time.Time // of batches
	added []time.Duration
}

const alone = 300 * time.Microsecond // time added to a single call without other load

// batch runs batch calls until stop is closed.
func (m *machine) batch(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		time.Sleep(m.p.next(time.Now()))
		time.Sleep(time.Duration(float64(time.Second) / m.capacity))
		m.mu.Lock()
		m.calls = append(m.calls, time.Now())
		m.mu.Unlock()
	}
}

// singles runs single calls one after the other for d, with a pause after each.
func (m *machine) singles(d, pause time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		m.mu.Lock()
		load := m.rateLocked(50*time.Millisecond) / 1000
		share := load
		if m.hitches {
			if share = 0; m.dice.Float64() < load/10 {
				share = 4
			}
		}
		added := time.Duration(float64(alone) * m.slowness * (1 + share) * (0.8 + 0.4*m.dice.Float64()))
		m.added = append(m.added, added)
		m.mu.Unlock()
		time.Sleep(added + pause)
		m.p.met(time.Now(), added)
	}
}

func (m *machine) rateLocked(over time.Duration) float64 {
	since := time.Now().Add(-over)
	n := 0
	for i := len(m.calls) - 1; i >= 0 && m.calls[i].After(since); i-- {
		n++
	}
	return float64(n) / over.Seconds()
}

// rate returns the number of batch calls per second over the last period.
func (m *machine) rate(over time.Duration) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rateLocked(over)
}

// slowest returns the 90th percentile of the time added to single calls since the last call.
func (m *machine) slowest() time.Duration { return m.slowestOf(10) }

// slowestOf returns the largest time added to single calls since the last call, without one of n.
func (m *machine) slowestOf(n int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.added)
	most := m.added[len(m.added)*(n-1)/n]
	m.added = nil
	return most
}

func onMachine(t *testing.T, f func(m *machine, start func())) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		m := &machine{capacity: 20_000, slowness: 1, dice: rand.New(rand.NewPCG(4, 2))}
		stop := make(chan struct{})
		var batch sync.WaitGroup
		f(m, func() { batch.Go(func() { m.batch(stop) }) })
		close(stop)
		batch.Wait()
	})
}

func TestBatchesYieldWhileSingleCallsComeAndContinueAfterwards(t *testing.T) {
	onMachine(t, func(m *machine, start func()) {
		m.singles(time.Second, 0)
		start()
		m.singles(2*time.Second, 0) // until they reach their rate
		m.slowest()
		m.singles(2*time.Second, 0)
		if most := m.slowest(); most > 5*alone/2 {
			t.Errorf("beside a batch %s are added to nine of ten single calls, alone it is about %s", most, alone)
		}
		if rate := m.rate(2 * time.Second); rate < rateLeast {
			t.Errorf("the batch is down to %.0f calls/s", rate)
		}
		time.Sleep(2 * rateFor)
		if rate := m.rate(time.Second / 2); rate < 0.9*m.capacity {
			t.Errorf("without single calls the batch does %.0f calls/s of %.0f", rate, m.capacity)
		}
	})
}

func TestBatchesYieldEvenIfFewSingleCallsAreMuchSlower(t *testing.T) {
	onMachine(t, func(m *machine, start func()) {
		m.hitches = true
		m.singles(time.Second, 0)
		start()
		m.singles(5*time.Second, 0)
		m.slowest()
		m.singles(5*time.Second, 0)
		if most := m.slowestOf(30); most > 2*alone {
			t.Errorf("beside a batch %s are added to all but one of thirty single calls, alone it is about %s", most, alone)
		}
		if rate := m.rate(2 * time.Second); rate < rateLeast {
			t.Errorf("the batch is down to %.0f calls/s", rate)
		}
	})
}

func TestBatchesThatStartedFirstYieldToSingleCalls(t *testing.T) {
	onMachine(t, func(m *machine, start func()) {
		start()
		time.Sleep(time.Second)
		m.singles(3*time.Second, 0)
		m.slowest()
		m.singles(2*time.Second, 0)
		if most := m.slowest(); most > 5*alone/2 {
			t.Errorf("beside a batch %s are added to nine of ten single calls, alone it is about %s", most, alone)
		}
	})
}

func TestRareSingleCallsDoNotSlowBatches(t *testing.T) {
	onMachine(t, func(m *machine, start func()) {
		start()
		m.singles(20*rateFor, 3*rateFor/2)
		if rate := m.rate(10 * time.Second); rate < 0.9*m.capacity {
			t.Errorf("the batch does %.0f calls/s of %.0f", rate, m.capacity)
		}
	})
}

func TestBatchIsNotSlowedIfSingleCallsStayFast(t *testing.T) {
	onMachine(t, func(m *machine, start func()) {
		m.capacity = 400 // on a machine with enough capacity
		m.singles(time.Second, 0)
		start()
		m.singles(3*time.Second, 0)
		if rate := m.rate(time.Second); rate < 0.9*m.capacity {
			t.Errorf("the batch does %.0f calls/s of %.0f", rate, m.capacity)
		}
	})
}

func TestSlownessWithOtherCausesDoesNotLimitBatchesForLong(t *testing.T) {
	onMachine(t, func(m *machine, start func()) {
		m.capacity = 400
		m.singles(time.Second, 0)
		start()
		m.slowness = 5 // for example, because of the network
		m.singles(30*time.Second, 0)
		if rate := m.rate(time.Second); rate < 0.9*m.capacity {
			t.Errorf("the batch does %.0f calls/s of %.0f", rate, m.capacity)
		}
	})
}
