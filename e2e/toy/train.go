package toy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/callyard/callyard/e2e/trainer"
)

// Settings are the settings of one run.
type Settings struct {
	Method string
	Reward string
	Seed   uint64
	// Steps is the number of learning steps, Questions the number of groups per step, and Group
	// the number of answers per group. EvaluateEvery is in steps.
	Steps, Questions, Group, EvaluateEvery int
	// Rate is the step size, and Passes the number of passes over the samples.
	Rate   float64
	Passes int
}

// Defaults returns the settings of the report.
func Defaults() Settings {
	return Settings{Method: GRPO, Reward: Full, Seed: 1, Steps: 500, Questions: 4, Group: 4, EvaluateEvery: 50, Rate: 4, Passes: 2}
}

// Point is the accuracy on held-out questions after a number of steps.
type Point struct {
	Step  int     `json:"step"`
	Right int     `json:"right"`
	Of    int     `json:"of"`
	Low   float64 `json:"low"` // of the 95 % interval
	High  float64 `json:"high"`
}

// Accuracy returns the share of right answers.
func (p Point) Accuracy() float64 { return float64(p.Right) / float64(p.Of) }

// Curve is the result of a run.
type Curve struct {
	Method string  `json:"method"`
	Reward string  `json:"reward"`
	Seed   uint64  `json:"seed"`
	Points []Point `json:"points"`
	Masked int     `json:"masked"` // episodes without a valid result
}

// First and Last return the first and the last point of the curve.
func (c *Curve) First() Point { return c.Points[0] }

// Last is described with First.
func (c *Curve) Last() Point { return c.Points[len(c.Points)-1] }

// run is a running training.
type run struct {
	set         Settings
	tasks, held []*Task
	known       []tool
	policy      *policy
	draw        *rand.Rand
	learning    []*trainer.Conn // to the environment of the reward
	judging     []*trainer.Conn // to the environment that measures accuracy
	masked      int
}

// redraws limits the number of times that DAPO replaces a question that has no gradient.
const redraws = 4

// Train trains a policy through the environments at base, with their tasks.
func Train(ctx context.Context, base string, all []Task, s Settings) (*Curve, error) {
	r := &run{set: s, tasks: splitOf(all, "train"), held: splitOf(all, "held-out"), known: tools(), draw: rand.New(rand.NewPCG(s.Seed, 7))}
	r.policy = newPolicy(len(r.known))
	defer r.close()
	for range s.Questions * s.Group {
		for _, to := range []struct {
			conns *[]*trainer.Conn
			name  string
		}{{&r.learning, s.Reward}, {&r.judging, Full}} {
			c, err := trainer.Dial(ctx, base+"/"+to.name)
			if err != nil {
				return nil, err
			}
			*to.conns = append(*to.conns, c)
		}
	}
	curve := &Curve{Method: s.Method, Reward: s.Reward, Seed: s.Seed}
	for step := 0; ; step++ {
		if step%s.EvaluateEvery == 0 || step == s.Steps {
			p, err := r.evaluate(step)
			if err != nil {
				return nil, err
			}
			curve.Points = append(curve.Points, p)
		}
		if step == s.Steps || ctx.Err() != nil {
			curve.Masked = r.masked
			return curve, ctx.Err()
		}
		groups, err := r.collect()
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", step, err)
		}
		r.policy.learn(s.Method, groups, s.Rate, s.Passes)
	}
}

func (r *run) close() {
	for _, c := range append(r.learning, r.judging...) {
		c.Close()
	}
}

// collect draws questions and answers and gets their rewards from the environment.
func (r *run) collect() ([]*group, error) {
	groups := make([]*group, r.set.Questions)
	for i := range groups {
		groups[i] = r.question()
	}
	if err := r.rewardAll(groups); err != nil || r.set.Method != DAPO {
		return groups, err
	}
	for range redraws {
		var again []*group
		for i, g := range groups {
			if g.equal() {
				groups[i] = r.question()
				again = append(again, groups[i])
			}
		}
		if err := r.rewardAll(again); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// question draws a question and answers to it.
func (r *run) question() *group {
	t := r.tasks[r.draw.IntN(len(r.tasks))]
	g := &group{task: t, features: featuresOf(t.Question), samples: make([]sample, r.set.Group)}
	for i := range g.samples {
		c := r.policy.sample(g.features, r.draw)
		g.samples[i] = sample{choice: c, old: r.policy.probabilities(g.features, c)}
	}
	return g
}

// rewardAll plays an episode for each sample.
func (r *run) rewardAll(groups []*group) error {
	lowest, highest := rangeOf(r.set.Reward)
	var each []func(c *trainer.Conn) error
	for _, g := range groups {
		for i := range g.samples {
			each = append(each, func(c *trainer.Conn) error {
				s := &g.samples[i]
				seen, err := r.play(c, g.task, s.choice)
				if err != nil {
					return err
				}
				if s.masked = seen.Reward == nil; !s.masked {
					s.reward = min(max((*seen.Reward-lowest)/(highest-lowest), 0), 1)
				}
				return nil
			})
		}
	}
	if err := over(r.learning, each); err != nil {
		return err
	}
	for _, g := range groups {
		r.masked += len(g.samples) - len(g.kept())
	}
	return nil
}

// rangeOf returns the minimum and the maximum reward of an environment, which BNPO needs.
func rangeOf(reward string) (lowest, highest float64) {
	switch reward {
	case Selection:
		return -1.5, 2
	case Format:
		return -1, 1
	}
	return -2.5, 5
}

// play plays one episode.
func (r *run) play(c *trainer.Conn, t *Task, made choice) (*trainer.Seen, error) {
	text, err := t.text(made, r.known)
	if err != nil {
		return nil, err
	}
	if _, err := c.Reset(map[string]any{"task_id": t.ID}); err != nil {
		return nil, err
	}
	seen, err := c.Say(text)
	if err == nil && !seen.Done {
		err = fmt.Errorf("the episode of %s did not end", t.ID)
	}
	return seen, err
}

// over runs the functions, one at a time on each connection.
func over(conns []*trainer.Conn, each []func(c *trainer.Conn) error) error {
	var work sync.WaitGroup
	faults := make([]error, len(conns))
	for lane, c := range conns {
		work.Go(func() {
			for i := lane; i < len(each) && faults[lane] == nil; i += len(conns) {
				faults[lane] = each[i](c)
			}
		})
	}
	work.Wait()
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}

// evaluate makes the policy answer each held-out question once.
func (r *run) evaluate(step int) (Point, error) {
	draw := rand.New(rand.NewPCG(r.set.Seed, uint64(step)+1000))
	right, masked := make([]bool, len(r.held)), make([]bool, len(r.held))
	each := make([]func(c *trainer.Conn) error, len(r.held))
	for i, t := range r.held {
		made := r.policy.sample(featuresOf(t.Question), draw)
		each[i] = func(c *trainer.Conn) error {
			seen, err := r.play(c, t, made)
			if err != nil {
				return err
			}
			masked[i] = seen.Reward == nil
			right[i] = seen.Metadata.Components["success"] == 1
			return nil
		}
	}
	if err := over(r.judging, each); err != nil {
		return Point{}, fmt.Errorf("evaluating after step %d: %w", step, err)
	}
	p, lost := pointOf(step, right, masked)
	if r.masked += lost; p.Of == 0 {
		return Point{}, fmt.Errorf("evaluating after step %d: all %d episodes were masked", step, lost)
	}
	p.Low, p.High = wilson(p.Right, p.Of)
	return p, nil
}

// pointOf counts the right answers of episodes that were not masked, because masked ones say
// nothing about the policy. lost is the number of masked episodes.
func pointOf(step int, right, masked []bool) (p Point, lost int) {
	p.Step = step
	for i := range right {
		switch {
		case masked[i]:
			lost++
			continue
		case right[i]:
			p.Right++
		}
		p.Of++
	}
	return p, lost
}

// wilson returns the 95 % interval of a share, after Wilson (1927).
func wilson(right, of int) (low, high float64) {
	const z = 1.959963984540054
	n, share := float64(of), float64(right)/float64(of)
	middle := (share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}
