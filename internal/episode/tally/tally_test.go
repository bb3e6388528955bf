package tally

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestACurveIsBoundedAndKeepsTheMean(t *testing.T) {
	var b Book
	start := time.Unix(1_000_000, 0)
	const n = 10_000
	var sum float64
	for i := range n {
		reward, at := math.Sin(float64(i)/700), start.Add(time.Duration(i)*time.Second)
		sum += reward
		b.End("a", Episode{ID: fmt.Sprint(i), Outcome: "done", Reward: &reward, Ended: &at})
	}
	b.End("a", Episode{ID: "m", Outcome: "masked", Reason: "worker-lost", Ended: &start})
	b.End("a", Episode{ID: "c", Outcome: "closed", Ended: &start})
	e := Environment{Name: "a"}
	b.Fill(&e)
	if e.Ended != n+2 || e.Outcomes["done"] != n || e.Outcomes["closed"] != 1 || e.Masked["worker-lost"] != 1 || e.Rewards != n || math.Abs(*e.Mean-sum/n) > 1e-9 || *e.Least >= *e.Most {
		t.Errorf("%+v", e)
	}
	curve, recent := b.Show("a")
	if len(curve) < maxPoints/2 || len(curve) > maxPoints || len(recent) != maxEnded || recent[0].ID != "c" || recent[2].ID != "9999" || recent[99].ID != "9902" {
		t.Errorf("%d points, %d episodes: %+v", len(curve), len(recent), recent[0])
	}
	var episodes int64
	var mean float64
	for i, p := range curve {
		episodes += p.Episodes
		mean += p.Mean * float64(p.Episodes) / n
		if i > 0 && !p.From.After(curve[i-1].To) || p.To.Before(p.From) {
			t.Errorf("point %d is from %v to %v", i, p.From, p.To)
		}
	}
	if episodes != n || math.Abs(mean-sum/n) > 1e-9 {
		t.Errorf("the points have %d episodes with mean %f, want %f", episodes, mean, sum/n)
	}
}

func TestEnvironmentWithoutEpisodesIsEmptyNotNull(t *testing.T) {
	var b Book
	e := Environment{Name: "a"}
	b.Fill(&e)
	if curve, recent := b.Show("a"); curve == nil || recent == nil || e.Mean != nil || e.Outcomes == nil || e.Masked == nil {
		t.Errorf("%v %v %+v", curve, recent, e)
	}
	b.End("b", Episode{ID: "1", Outcome: "closed"})
	if _, recent := b.Show("b"); len(recent) != 1 {
		t.Errorf("%v", recent)
	}
}
