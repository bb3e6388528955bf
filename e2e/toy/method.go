package toy

import (
	"math"
	"slices"
)

// Methods of learning. All compare the samples of a group, which answer one question.
const (
	GRPO   = "GRPO"
	DrGRPO = "Dr. GRPO"
	DAPO   = "DAPO"
	BNPO   = "BNPO"
)

// Methods returns all methods, and Rewards all rewards.
func Methods() []string { return []string{GRPO, DrGRPO, DAPO, BNPO} }

// Rewards is described with Methods.
func Rewards() []string { return []string{Full, Selection, Format} }

const (
	clip       = 0.2  // of the ratio of probabilities
	clipHigher = 0.28 // upwards, for DAPO
	longest    = 2    // tokens of an answer, for Dr. GRPO
	epsilon    = 1e-6
	leastNorm  = 0.2 // of BNPO; below it, one group would outweigh all others
)

// sample is one answer with its reward.
type sample struct {
	choice choice
	old    []float64 // the probabilities of its tokens when it was drawn
	reward float64   // from 0 to 1
	masked bool
}

// group holds the answers to one question.
type group struct {
	task     *Task
	features features
	samples  []sample
}

// kept returns the samples that have a reward. Masked samples are ignored everywhere.
func (g *group) kept() (out []*sample) {
	for i := range g.samples {
		if !g.samples[i].masked {
			out = append(out, &g.samples[i])
		}
	}
	return out
}

func (g *group) meanAndDeviation() (mean, deviation float64) {
	kept := g.kept()
	for _, s := range kept {
		mean += s.reward / float64(len(kept))
	}
	for _, s := range kept {
		deviation += (s.reward - mean) * (s.reward - mean) / float64(len(kept))
	}
	return mean, math.Sqrt(deviation)
}

// equal reports whether all rewards of a group are the same, so that it has no gradient. DAPO
// draws another group in this case.
func (g *group) equal() bool {
	_, deviation := g.meanAndDeviation()
	return deviation < epsilon
}

// beta holds the parameters by which BNPO normalizes.
type beta struct{ alpha, beta float64 }

// betaOf fits a beta distribution to the mean rewards of the groups, by their moments, and
// returns the values that BNPO derives from its parameters a and b: 1+a/3 and 1+b/3. Groups
// whose samples are all masked have no mean.
func betaOf(groups []*group) beta {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return len(g.kept()) == 0 })
	mean, variance := 0.0, 0.0
	for _, g := range groups {
		m, _ := g.meanAndDeviation()
		mean += m / float64(len(groups))
	}
	for _, g := range groups {
		m, _ := g.meanAndDeviation()
		variance += (m - mean) * (m - mean) / float64(len(groups))
	}
	if variance < epsilon || mean*(1-mean) <= variance {
		return beta{1, 1} // no distribution fits: no normalization
	}
	common := mean*(1-mean)/variance - 1
	return beta{1 + mean*common/3, 1 + (1-mean)*common/3}
}

// norm returns the density of the distribution at p.
func (b beta) norm(p float64) float64 {
	if b == (beta{1, 1}) {
		return 1
	}
	p = min(max(p, epsilon), 1-epsilon)
	whole, _ := math.Lgamma(b.alpha + b.beta)
	left, _ := math.Lgamma(b.alpha)
	right, _ := math.Lgamma(b.beta)
	return max(leastNorm, math.Exp((b.alpha-1)*math.Log(p)+(b.beta-1)*math.Log(1-p)+whole-left-right))
}

// learn makes one step of gradient ascent with the groups. It makes passes passes over the
// samples. The ratio of probabilities is clipped from the second pass on.
func (p *policy) learn(method string, groups []*group, rate float64, passes int) {
	fitted := betaOf(groups)
	for range passes {
		for _, g := range groups {
			kept := g.kept()
			mean, deviation := g.meanAndDeviation()
			all := 0
			for _, s := range kept {
				all += s.choice.tokens()
			}
			for _, s := range kept {
				advantage := s.reward - mean
				share := 1 / float64(len(kept)*s.choice.tokens()) // of each token
				switch method {
				case GRPO:
					advantage /= deviation + epsilon
				case DrGRPO:
					share = 1 / float64(len(kept)*longest)
				case DAPO:
					advantage /= deviation + epsilon
					share = 1 / float64(all)
				case BNPO:
					advantage /= fitted.norm(mean)
				}
				p.step(method, g.features, s, advantage, rate*share/float64(len(groups)))
			}
		}
	}
}

// step updates the policy for one sample.
func (p *policy) step(method string, f features, s *sample, advantage, rate float64) {
	high := 1 + clip
	if method == DAPO {
		high = 1 + clipHigher
	}
	now := p.probabilities(f, s.choice)
	for i := range now {
		ratio := now[i] / s.old[i]
		if advantage > 0 && ratio > high || advantage < 0 && ratio < 1-clip {
			continue // the clipped objective is flat there
		}
		rows, chosen := p.form, s.choice.form
		if i == 1 {
			rows, chosen = p.tool, s.choice.tool
		}
		climb(rows, f, chosen, rate*ratio*advantage)
	}
}
