// Package tally counts the episodes of environments: the number of episodes by outcome, their
// rewards, and the rewards over time.
//
// Its memory is bounded, whatever the number of episodes: it keeps the episodes that ended last, and
// a curve whose points become coarser. It keeps everything in memory, since the start of the
// process.
//
// It does not run episodes and does not decide who may see them.
package tally

import (
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// maxEnded limits the ended episodes that are kept.
	maxEnded = 100
	// maxPoints limits the points of a curve.
	maxPoints = 128
)

// Environment holds the counts of one environment.
type Environment struct {
	Name      string `json:"name"`
	Isolation string `json:"isolation"`
	// Running is the number of episodes that have not been closed. Limit is the maximum.
	Running int `json:"running"`
	Limit   int `json:"limit"`
	// Ended is the number of closed episodes. Outcomes counts them by outcome: done, truncated,
	// masked, closed (before they finished). Masked counts the masked ones by failure kind.
	Ended    int64            `json:"ended"`
	Outcomes map[string]int64 `json:"outcomes"`
	Masked   map[string]int64 `json:"masked"`
	// Rewards counts the episodes with a reward. If it is 0, Mean, Least and Most are absent.
	Rewards int64    `json:"rewards"`
	Mean    *float64 `json:"mean_reward,omitempty"`
	Least   *float64 `json:"least_reward,omitempty"`
	Most    *float64 `json:"most_reward,omitempty"`
}

// List is the response of GET /environments.
type List struct {
	// Since is the start of counting.
	Since        time.Time     `json:"since"`
	Environments []Environment `json:"environments"`
}

// Detail is the response of GET /{environment}/episodes.
type Detail struct {
	Since       time.Time   `json:"since"`
	Environment Environment `json:"environment"`
	// Curve is the mean reward over time. All points but the last cover the same number of
	// consecutive episodes, in the order of their ends.
	Curve []Point `json:"curve"`
	// InProgress lists the open episodes, oldest first. Recent lists the episodes that ended
	// last, newest first. Each has at most 100.
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
	// Outcome is "" while the episode is in progress. Reason is the failure kind of a masked one.
	Outcome string     `json:"outcome,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Reward  *float64   `json:"reward,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
}

// Book counts episodes. It is safe for concurrent use. The zero value is ready to use.
type Book struct {
	mu sync.Mutex
	of map[string]*page
}

// page holds the counts of one environment.
type page struct {
	ended            int64
	outcomes, masked map[string]int64
	rewards          int64
	sum, least, most float64
	curve            []Point
	each             int64     // the number of episodes in a full point
	recent           []Episode // a ring buffer
	next             int
}

// End counts an ended episode.
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

// earn adds a reward.
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

// joined merges two consecutive points.
func joined(a, b Point) Point {
	n := a.Episodes + b.Episodes
	return Point{a.From, b.To, n, a.Mean + (b.Mean-a.Mean)*float64(b.Episodes)/float64(n)}
}

// Fill sets the counts in e, the environment with the name e.Name.
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

// Show returns the curve of an environment and the episodes that ended last, newest first. Neither
// is nil.
func (b *Book) Show(environment string) (curve []Point, recent []Episode) {
	curve, recent = []Point{}, []Episode{}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.of[environment]; p != nil {
		curve = append(curve, p.curve...)
		oldest := p.next % len(p.recent)
		recent = append(append(recent, p.recent[oldest:]...), p.recent[:oldest]...)
		slices.Reverse(recent)
	}
	return curve, recent
}
