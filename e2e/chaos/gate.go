package chaos

import "context"

// gate limits the calls that may begin in proportion to the faults that have struck, so that
// load remains for the other faults.
type gate struct {
	mu      chan struct{} // a lock that can be waited for together with a context
	wake    chan struct{} // closed and replaced when more calls may begin
	calls   int
	faults  int
	fired   int
	started int
}

func newGate(calls, faults int) *gate {
	g := &gate{mu: make(chan struct{}, 1), wake: make(chan struct{}), calls: calls, faults: faults}
	return g
}

// most returns the number of calls that may have begun.
func (g *gate) most() int {
	if g.fired >= g.faults {
		return g.calls
	}
	return min(g.calls, (g.fired+2)*g.calls/(g.faults+1))
}

// pass waits until n more calls may begin. It returns false if the load ends.
func (g *gate) pass(ctx context.Context, n int) bool {
	for {
		g.mu <- struct{}{}
		if g.started < g.most() {
			g.started += n
			<-g.mu
			return ctx.Err() == nil
		}
		wake := g.wake
		<-g.mu
		select {
		case <-wake:
		case <-ctx.Done():
			return false
		}
	}
}

// share returns the share of the calls that have begun.
func (g *gate) share() float64 {
	g.mu <- struct{}{}
	defer func() { <-g.mu }()
	return float64(g.started) / float64(g.calls)
}

// fire records that one more fault has struck.
func (g *gate) fire() {
	g.mu <- struct{}{}
	g.fired++
	close(g.wake)
	g.wake = make(chan struct{})
	<-g.mu
}

func (g *gate) struck() int {
	g.mu <- struct{}{}
	defer func() { <-g.mu }()
	return g.fired
}
