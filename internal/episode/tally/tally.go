// Package tally counts the episodes of environments: how many began and ended how, what they
// earned, and how that changed over time.
//
// It promises that what it keeps is bounded, whatever number of episodes there is: the last ones
// that ended, and a curve whose points become coarser. It keeps all in memory, since the process
// began.
//
// It refuses to know what an episode is, and who may see it.
package tally

import (
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// maxEnded is how many episodes that ended are kept.
	maxEnded = 100
	// maxPoints is how many points a curve has at most.
	maxPoints = 128
)

// Environment is what was counted of one environment.
type Environment struct {
	Name      string `json:"name"`
	Isolation string `json:"isolation"`
	// Running is the number of episodes that have not been closed, Limit the most that there may be.
	Running int `json:"running"`
	Limit   int `json:"limit"`
	// Ended is the number of episodes that were closed, and Outcomes that of each outcome: done,
	// truncated, masked, closed (nobody finished it). Masked tells those apart by failure kind.
	Ended    int64            `json:"ended"`
	Outcomes map[string]int64 `json:"outcomes"`
	Masked   map[string]int64 `json:"masked"`
	// Rewards counts the episodes with a reward. Mean, Least and Most are absent without any.
	Rewards int64    `json:"rewards"`
	Mean    *float64 `json:"mean_reward,omitempty"`
	Least   *float64 `json:"least_reward,omitempty"`
	Most    *float64 `json:"most_reward,omitempty"`
}

// List is the answer of GET /environments.
type List struct {
	// Since is when counting began.
	Since        time.Time     `json:"since"`
	Environments []Environment `json:"environments"`
}

// Detail is the answer of GET /{environment}/episodes.
type Detail struct {
	Since       time.Time   `json:"since"`
	Environment Environment `json:"environment"`
	// Curve is the mean reward over time: each point is that of as many episodes, one after the
	// other by their ends.
	Curve []Point `json:"curve"`
	// InProgress has the episodes that were not closed, the oldest first, at most 100. Recent has
	// those that ended last, the newest first, at most 100.
	InProgress []Episode `json:"in_progress"`
	Recent     []Episode `json:"recent"`
}

// Point is a point of a curve.
type Point struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Episodes int64     `json:"episodes"`
	Mean     float64   `json:"mean"`
}

// Episode is one episode.
type Episode struct {
	ID        string    `json:"id"`
	Task      string    `json:"task"`
	Principal string    `json:"principal"`
	Steps     int       `json:"steps"`
	Began     time.Time `json:"began"`
	// Outcome is "" while the episode is in progress; Reason is the failure kind of a masked one.
	Outcome string     `json:"outcome,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Reward  *float64   `json:"reward,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
}

// Book counts. It is safe for concurrent use; the zero value is ready.
type Book struct {
	mu sync.Mutex
	of map[string]*page
}

// page is what is kept of one environment.
type page struct {
	ended            int64
	outcomes, masked map[string]int64
	rewards          int64
	sum, least, most float64
	curve            []Point
	each             int64     // the episodes of a full point
	recent           []Episode // a ring
	next             int
}

// End counts an episode that ended.
func (b *Book) End(environment string, e Episode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[string]*page)
	}
	p := b.of[environment]
	if p == nil {
		p = &page{outcomes: make(map[string]int64), masked: make(map[string]int64), each: 1}
		b.of[environment] = p
	}
	p.ended++
	p.outcomes[e.Outcome]++
	if e.Reason != "" {
		p.masked[e.Reason]++
	}
	if len(p.recent) < maxEnded {
		p.recent = append(p.recent, e)
	} else {
		p.recent[p.next] = e
	}
	p.next = (p.next + 1) % maxEnded
	if e.Reward != nil && e.Ended != nil {
		p.earn(*e.Reward, *e.Ended)
	}
}

// earn counts a reward.
func (p *page) earn(reward float64, at time.Time) {
	if p.rewards == 0 {
		p.least, p.most = reward, reward
	}
	p.rewards++
	p.sum += reward
	p.least, p.most = min(p.least, reward), max(p.most, reward)
	if n := len(p.curve); n > 0 && p.curve[n-1].Episodes < p.each {
		p.curve[n-1] = joined(p.curve[n-1], Point{at, at, 1, reward})
		return
	}
	if len(p.curve) == maxPoints {
		for i := range maxPoints / 2 {
			p.curve[i] = joined(p.curve[2*i], p.curve[2*i+1])
		}
		p.curve = p.curve[:maxPoints/2]
		p.each *= 2
	}
	p.curve = append(p.curve, Point{at, at, 1, reward})
}

// joined is one point in place of two that follow each other.
func joined(a, b Point) Point {
	n := a.Episodes + b.Episodes
	return Point{a.From, b.To, n, a.Mean + (b.Mean-a.Mean)*float64(b.Episodes)/float64(n)}
}

// Fill writes what was counted of an environment into what else is known of it.
func (b *Book) Fill(e *Environment) {
	e.Outcomes, e.Masked = map[string]int64{}, map[string]int64{}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.of[e.Name]
	if p == nil {
		return
	}
	e.Ended, e.Outcomes, e.Masked, e.Rewards = p.ended, maps.Clone(p.outcomes), maps.Clone(p.masked), p.rewards
	if p.rewards > 0 {
		mean, least, most := p.sum/float64(p.rewards), p.least, p.most
		e.Mean, e.Least, e.Most = &mean, &least, &most
	}
}

// Show returns the curve of an environment, and the episodes that ended last, the newest first.
// Neither is nil.
func (b *Book) Show(environment string) (curve []Point, recent []Episode) {
	curve, recent = []Point{}, []Episode{}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.of[environment]; p != nil {
		curve = append(curve, p.curve...)
		if len(p.recent) == maxEnded { // the oldest is the next to be replaced
			recent = append(recent, p.recent[p.next:]...)
			recent = append(recent, p.recent[:p.next]...)
		} else {
			recent = append(recent, p.recent...)
		}
		slices.Reverse(recent)
	}
	return curve, recent
}
