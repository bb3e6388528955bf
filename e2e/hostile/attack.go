package hostile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Target is an address and the operations that it offers.
type Target struct {
	Name string
	// Addr is a loopback address, host:port.
	Addr    string
	Goldens []Golden
}

// Attack configures the requests that are sent.
type Attack struct {
	Seed    uint64
	Targets []Target
	// Each is the number of requests for each golden.
	Each int
	// Lanes is the number of concurrent connections.
	Lanes int
	// Patience limits the time for a response (10 s). Slower responses are
	// counted but are not findings, because many requests ask to wait.
	Patience time.Duration
	// Pause is the time that each lane pauses after a request.
	Pause time.Duration
}

// Whole sends an unchanged golden and returns the status of the response.
func Whole(ctx context.Context, t Target, g Golden) (int, error) {
	l := &lane{addr: t.Addr, patient: time.Minute}
	defer l.close()
	a, err := l.send(ctx, Request{Method: g.Method, Wire: g.bytes(t.Addr), Framed: true})
	if err != nil {
		return 0, fmt.Errorf("sending %s to %s: %w", g.Operation, t.Name, err)
	}
	return a.status, nil
}

// Report counts the responses.
type Report struct {
	Sent int
	// Statuses counts responses by status. 0 means that the connection was closed without a
	// response, and -1 that there was none within the patience.
	Statuses map[int]int
	// Damages counts requests by their damage.
	Damages map[string]int
	// Findings are the violations, at most maxFindings of them. FindingCount is the
	// total number.
	Findings     []string
	FindingCount int
	Took         time.Duration
	// Times is the total response time of each operation, by status.
	Times map[string]time.Duration
}

const maxFindings = 50

// Run sends all requests, or as many as possible until ctx ends. It returns an error if a
// target cannot be reached, because it must accept connections during the attack.
func (a *Attack) Run(ctx context.Context) (*Report, error) {
	patience := a.Patience
	if patience <= 0 {
		patience = 10 * time.Second
	}
	type job struct {
		target *Target
		golden int
		n      int
	}
	total := 0
	for _, t := range a.Targets {
		total += len(t.Goldens) * a.Each
	}
	// The operations alternate, so that a run that ends early covers all of them.
	at := func(i int) job {
		perRound := total / max(a.Each, 1)
		n, rest := i/perRound, i%perRound
		for t := range a.Targets {
			if rest < len(a.Targets[t].Goldens) {
				return job{&a.Targets[t], rest, n}
			}
			rest -= len(a.Targets[t].Goldens)
		}
		panic("hostile: more requests than there are") // total limits the index
	}
	report := &Report{Statuses: map[int]int{}, Damages: map[string]int{}, Times: map[string]time.Duration{}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	var mu sync.Mutex
	var next atomic.Int64
	var wait sync.WaitGroup
	for range max(a.Lanes, 1) {
		wait.Go(func() {
			lanes := map[string]*lane{}
			defer func() {
				for _, l := range lanes {
					l.close()
				}
			}()
			for i := int(next.Add(1)) - 1; i < total && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				j := at(i)
				l := lanes[j.target.Addr]
				if l == nil {
					l = &lane{addr: j.target.Addr, patient: patience}
					lanes[j.target.Addr] = l
				}
				g := j.target.Goldens[j.golden]
				r := Damaged(a.Seed, g, j.target.Addr, j.n)
				sent := time.Now()
				got, err := l.send(ctx, r)
				took := time.Since(sent)
				if err != nil && !errors.Is(err, errGarbled) {
					if ctx.Err() == nil {
						cancel(fmt.Errorf("attacking %s: %w", j.target.Name, err))
					}
					return
				}
				mu.Lock()
				report.Times[fmt.Sprintf("%s %d", g.Operation, got.status)] += took
				report.add(fmt.Sprintf("%s %s, request %d of seed %d, %s", j.target.Name, g.Operation, j.n, a.Seed, r.Damage), r, got, err)
				mu.Unlock()
				if !rest(ctx, a.Pause) {
					return
				}
			}
		})
	}
	wait.Wait()
	report.Took = time.Since(began)
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return report, err
	}
	return report, nil
}

// Slowest returns the n operations that took the most time, with the status of the responses.
func (r *Report) Slowest(n int) []string {
	names := slices.SortedFunc(maps.Keys(r.Times), func(a, b string) int { return cmp.Compare(r.Times[b], r.Times[a]) })
	var list []string
	for _, name := range names[:min(n, len(names))] {
		list = append(list, fmt.Sprintf("%s: %s", name, r.Times[name].Round(time.Millisecond)))
	}
	return list
}

func (r *Report) add(what string, sent Request, got answer, err error) {
	r.Sent++
	r.Statuses[got.status]++
	r.Damages[sent.Damage]++
	fault := ""
	if err != nil {
		fault = err.Error()
	} else {
		fault = got.judge(true)
	}
	if fault == "" {
		return
	}
	r.FindingCount++
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, fmt.Sprintf("%s: %s\n  sent: %s", what, fault, shown(sent.Wire)))
	}
}

// rest waits. It returns false if ctx ended.
func rest(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
